"""Mutations of JSON and of safetensors files whose checksum is right again, and attacks that use them.

Every mutation is a function of a seed, so that a finding can be made again.
"""

import json
import random
import resource
import signal
import struct
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from safetensors.torch import load, save

from tests.fuzz.mutation import mutated
from vma.errors import InputError
from vma.tensor_files import checksum

SECONDS, GIGABYTES = 60.0, 4.0  # that one input may take, on a busy machine, and that all of them may add
LONGEST = 2000  # characters of a sentence
ODD_NUMBERS = (0, -1, 1, 2, 255, 2**31, -(2**31), 2**63, 2**64, 10**30, 0.5, -0.0, 1e308, -1e308, 5e-324)
ODD_TEXT = (
    "",
    "\0",
    "\x1b[31m",
    "é" * 50,
    "\ud800",
    "../../x",
    "a\nb",
    "=1+1",
    "9" * 5000,
    "nan",
    "Infinity",
    "-1",
)
ODD_JSON = (None, True, False, [], {}, [[]], *ODD_NUMBERS, *ODD_TEXT, float("nan"), float("inf"))
Make = Callable[[random.Random], Any]
Use = Callable[[Any], object]


@dataclass(frozen=True)
class Target:
    """What is attacked.

    Attributes:
        name: Of the kind of input.
        make: An input, by chance.
        use: What a user does with it; it must return, or raise an `InputError` of one sentence.
    """

    name: str
    make: Make
    use: Use


@dataclass
class Tally:
    """What came of many inputs.

    Attributes:
        inputs: How many.
        answered: How many were answered, though they were mutated.
        refused: How many were refused in a sentence.
        findings: Seeds and tracebacks of all others.
    """

    inputs: int = 0
    answered: int = 0
    refused: int = 0
    findings: list[tuple[str, str]] = field(default_factory=list)


def attack(target: Target, seeds: range, tally: Tally) -> None:
    """Use an input for each seed; what is neither an answer nor a sentence is noted."""
    for seed in seeds:
        name = f"{target.name}:{seed}"
        given = target.make(random.Random(name))
        tally.inputs += 1
        try:
            with at_most(SECONDS):
                target.use(given)
            tally.answered += 1
        except InputError as error:
            tally.refused += 1
            if not is_sentence(str(error)):
                tally.findings.append((name, f"no sentence: {error!r}"))
        except Exception:
            tally.findings.append((name, traceback.format_exc()))


def is_sentence(text: str) -> bool:
    """Whether an error is one line that ends as a sentence does."""
    return text.endswith((".", "?")) and text.isprintable() and len(text) <= LONGEST


class TooSlow(Exception):
    """An input took longer than it may."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `TooSlow` after so many seconds."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def peak() -> float:
    """The most memory that this process has had, in gigabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


# --- JSON ---------------------------------------------------------------------------------------------------


def mutated_json(value: Any, chance: random.Random) -> Any:
    """A JSON value with one to three values in it changed, lost, renamed or added."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        value = changed(value, chance)
    return value


def changed(value: Any, chance: random.Random) -> Any:
    """The value with one change, more often deep in it than at its top."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        name = chance.choice(list(value))
        rest = {key: each for key, each in value.items() if key != name}
        act = chance.random()
        if act < 0.1:
            return rest
        if act < 0.2:
            return {**rest, chance.choice((name + "s", *ODD_TEXT)): value[name]}
        return {**value, name: changed(value[name], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        place = chance.randrange(len(value))
        return [*value[:place], changed(value[place], chance), *value[place + 1 :]]
    if isinstance(value, int | float) and chance.random() < 0.6:
        return chance.choice((*ODD_NUMBERS, -value, value + 1, value * 2, value / 2, str(value)))
    if chance.random() < 0.02:
        return nested(chance.choice((100, 5000)))
    return chance.choice(ODD_JSON)


def nested(depth: int) -> Any:
    """Lists in lists."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def as_json(value: Any) -> bytes:
    """A JSON text of what may be nested too deeply for the encoder."""
    try:
        return json.dumps(value).encode(errors="surrogatepass")
    except RecursionError:
        return b"[" * 100_000


# --- safetensors --------------------------------------------------------------------------------------------


def mutated_tensors(content: bytes, chance: random.Random, config: str = "") -> bytes:
    """A safetensors file with other bytes, or with another header or other tensors and a checksum that is right.

    Args:
        content: The file.
        chance: Of the mutation.
        config: The name of an entry of the header that is JSON.
    """
    act = chance.random()
    if act < 0.4:
        return mutated([content], str(chance.random()))
    size = struct.unpack("<Q", content[:8])[0]
    header = dict(json.loads(content[8 : 8 + size])["__metadata__"])
    tensors = load(content)
    if act < 0.6 and config:
        header[config] = as_json(mutated_json(json.loads(header[config]), chance)).decode(
            errors="surrogatepass"
        )
    elif act < 0.75:
        name = chance.choice(list(header))
        header[name] = chance.choice((*ODD_TEXT, header[name][1:], header[name] * 2))
    else:
        name = chance.choice(list(tensors))
        tensors[name] = odd_tensor(tensors[name], chance)
        if chance.random() < 0.2:
            del tensors[name]
    header.pop("checksum", None)
    if chance.random() < 0.7:
        header["checksum"] = checksum(header, tensors)
    clean = {key: text.encode(errors="replace").decode() for key, text in header.items()}
    return save(tensors, metadata=clean)


def odd_tensor(tensor: Any, chance: random.Random) -> Any:
    """A tensor of another type or shape, or with a value that is not finite."""
    import torch

    act = chance.randrange(6)
    if act == 0:
        kinds = (
            torch.float16,
            torch.bfloat16,
            torch.float64,
            torch.int8,
            torch.int64,
            torch.bool,
            torch.uint8,
        )
        return tensor.to(chance.choice(kinds)).contiguous()
    if act == 1:
        return tensor[None].contiguous()
    if act == 2:
        return tensor.flatten()[: chance.randrange(tensor.numel() + 1)].contiguous()
    if act == 3 and tensor.is_floating_point() and tensor.numel():
        other = tensor.clone()
        other.view(-1)[chance.randrange(tensor.numel())] = chance.choice((torch.nan, torch.inf, 1e38))
        return other
    if act == 4:
        return torch.zeros(0)
    return tensor.t().contiguous() if tensor.ndim == 2 else tensor.reshape(-1).contiguous()
