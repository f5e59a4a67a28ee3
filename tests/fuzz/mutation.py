"""Inputs out of examples: the n-th one of a target is always the same."""

import re
from collections.abc import Callable, Sequence
from random import Random

BYTES = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)
NUMBERS = (0, 1, -1, 2**15 - 1, 2**16, 2**31 - 1, -(2**31), 2**32 - 1, 2**40, 2**63 - 1, -(2**63))
DIGITS = re.compile(rb"-?\d+(?:\.\d+)?")
WORDS = (
    b"-1", b"0", b"1e999", b"NaN", b"-Infinity", b"9" * 30, b"9" * 5000, b"null", b"true", b"[]", b"{}", b'""',
    b"\\ud800", b"\\u0000", b"\xff\xfe", b"\x1b[2J", b"\r\n", b"'=1+1", b"[" * 2000, b'{"a":' * 500,
)  # fmt: skip
MOST = 6  # changes of one input


def mutated(examples: Sequence[bytes], key: str) -> bytes:
    """One of the examples, changed in a few ways that `key` decides."""
    random = Random(key)
    content = bytearray(random.choice(examples))
    for _ in range(random.randint(1, MOST)):
        content = random.choice(CHANGES)(random, content, examples)
    return bytes(content)


def place(random: Random, content: bytearray) -> tuple[int, int]:
    """Where a slice begins and ends; small ones are likelier."""
    begin = random.randint(0, len(content))
    return begin, min(len(content), begin + int(2 ** random.uniform(0, 10)))


def flip(random: Random, content: bytearray, examples: Sequence[bytes]) -> bytearray:
    """Another bit."""
    if content:
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    return content


def overwrite(random: Random, content: bytearray, examples: Sequence[bytes]) -> bytearray:
    """Another byte."""
    if content:
        content[random.randrange(len(content))] = random.choice((*BYTES, random.randrange(256)))
    return content


def renumber(random: Random, content: bytearray, examples: Sequence[bytes]) -> bytearray:
    """A number of 2, 4 or 8 bytes, of either order, at an even place."""
    size = random.choice((2, 4, 8))
    if len(content) < size:
        return content
    begin = random.randrange(0, len(content) - size + 1)
    value = random.choice((*NUMBERS, len(content), random.getrandbits(8 * size))) % 2 ** (8 * size)
    content[begin : begin + size] = value.to_bytes(size, random.choice(("little", "big")))
    return content


def respell(random: Random, content: bytearray, examples: Sequence[bytes]) -> bytearray:
    """Another word where a number is written in letters, or anywhere."""
    found = list(DIGITS.finditer(bytes(content[:20_000])))
    begin, end = random.choice(found).span() if found and random.random() < 0.8 else place(random, content)
    content[begin:end] = random.choice(WORDS)
    return content


def cut(random: Random, content: bytearray, examples: Sequence[bytes]) -> bytearray:
    """Without a slice, or without an end."""
    begin, end = place(random, content)
    del content[begin : None if random.random() < 0.2 else end]
    return content


def repeat(random: Random, content: bytearray, examples: Sequence[bytes]) -> bytearray:
    """A slice again, once or many times."""
    begin, end = place(random, content)
    content[begin:begin] = content[begin:end] * random.choice((1, 1, 2, 16))
    return content


def insert(random: Random, content: bytearray, examples: Sequence[bytes]) -> bytearray:
    """Some bytes more."""
    begin, _ = place(random, content)
    content[begin:begin] = random.randbytes(random.randint(1, 16))
    return content


def splice(random: Random, content: bytearray, examples: Sequence[bytes]) -> bytearray:
    """A slice of another example."""
    other = random.choice(examples)
    begin, end = place(random, content)
    first, last = place(random, bytearray(other))
    content[begin:end] = other[first:last]
    return content


CHANGES: tuple[Callable[[Random, bytearray, Sequence[bytes]], bytearray], ...] = (
    flip, overwrite, overwrite, renumber, renumber, respell, cut, repeat, insert, splice,
)  # fmt: skip
