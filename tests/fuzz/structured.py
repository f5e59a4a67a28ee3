"""Mutations of JSON, and of safetensors files whose checksum is right again."""

import json
import random
import struct
from functools import lru_cache
from typing import Any

import torch
from safetensors.torch import load
from torch import Tensor

from tests.fuzz.mutation import mutated
from vma.tensor_files import checksum

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
KINDS = {
    torch.float16: "F16", torch.bfloat16: "BF16", torch.float32: "F32", torch.float64: "F64",
    torch.int8: "I8", torch.int32: "I32", torch.int64: "I64", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
ODD_JSON = (None, True, False, [], {}, [[]], *ODD_NUMBERS, *ODD_TEXT, float("nan"), float("inf"))

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
    header, tensors = (dict(each) for each in unpacked(content))
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
    return packed(clean, tensors)


@lru_cache(16)
def unpacked(content: bytes) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Header and tensors of a right file; nobody changes them in place."""
    size = struct.unpack("<Q", content[:8])[0]
    return json.loads(content[8 : 8 + size])["__metadata__"], load(content)


def packed(header: dict[str, str], tensors: dict[str, Tensor]) -> bytes:
    """The bytes of a safetensors file, made ten times as fast as by its library."""
    about: dict[str, Any] = {"__metadata__": header}
    parts, place = [], 0
    for name, tensor in tensors.items():
        part = tensor.reshape(-1).view(torch.uint8).numpy().tobytes()
        about[name] = {
            "dtype": KINDS[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, place := place + len(part)],
        }
        parts.append(part)
    text = json.dumps(about).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(parts)


def odd_tensor(tensor: Any, chance: random.Random) -> Any:
    """A tensor of another type or shape, or with a value that is not finite."""
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
