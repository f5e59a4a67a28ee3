"""What is attacked, and what may come of it: an answer, or one sentence."""

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vma.errors import InputError

LONGEST = 2000  # characters of a sentence


@dataclass(frozen=True)
class Target:
    """Something that reads what comes from outside.

    Attributes:
        name: Of the kind of input.
        make: An input, by chance.
        use: What a user does with it, given a folder for files; it returns, or raises an `InputError`.
        share: How many inputs of a long run are of this kind, in proportion: what is quick gets more.
        right: Inputs that should be answered, if there are any beside those that `make` begins with.
    """

    name: str
    make: Callable[[random.Random], Any]
    use: Callable[[Any, Path], object]
    share: int
    right: Callable[[], list[Any]] = list


def made(target: Target, seed: int, number: int) -> Any:
    """The input of that number: always the same one."""
    return target.make(random.Random(f"{seed}:{target.name}:{number}"))


def outcome(target: Target, given: Any, folder: Path) -> str:
    """`answer` or `sentence`; anything else is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            target.use(given, folder)
        except InputError as error:
            if not is_sentence(str(error)):
                raise AssertionError(f"no sentence: {error}") from error
            return "sentence"
    return "answer"


def is_sentence(text: str) -> bool:
    """Whether an error is one line that ends as a sentence does."""
    return text.endswith((".", "?")) and text.isprintable() and len(text) <= LONGEST
