"""A reader for the numeric matrices of MATLAB 5 files, which is all that `chardata.mat` needs.

The format is a 128-byte header and then elements: a type and a length (4 bytes each), the data, padding to 8
bytes. Small elements pack type, length and up to 4 bytes of data in 8 bytes. Element 15 is a zlib stream of
another element; element 14 is a matrix: flags, sizes, name, real part.
"""

import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vma.errors import InputError

MATRIX, COMPRESSED = 14, 15
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
NUMERIC_CLASSES = range(
    6, 16
)  # double, single, (u)int8 … (u)int64; not cells, structures, characters, objects
LIMIT = 2**29


@dataclass(frozen=True)
class Element:
    """One element: its type and its bytes."""

    kind: int
    content: memoryview


def read_mat(path: Path) -> dict[str, np.ndarray]:
    """The numeric matrices of a MATLAB 5 file by name."""
    try:
        raw = memoryview(path.read_bytes())
        order = {b"IM": "<", b"MI": ">"}[bytes(raw[126:128])]
        matrices = [_matrix(element, order) for element in _elements(raw[128:], order)]
    except (OSError, KeyError, ValueError, IndexError, zlib.error) as error:
        raise InputError(
            f"{path} is not a complete MATLAB 5 file ({error}): delete it and get it again."
        ) from error
    return dict(matrix for matrix in matrices if matrix is not None)


def _elements(raw: memoryview, order: str) -> Iterator[Element]:
    """The elements that lie one after the other in `raw`, unpacked."""
    while len(raw) >= 8:
        kind, length = (int(word) for word in np.frombuffer(raw[:8], f"{order}u4"))
        small = kind >> 16
        start, size = (4, small) if small else (8, length)
        if start + size > len(raw) or small > 4:
            raise ValueError("it ends too early")
        content = raw[start : start + size]
        if kind == COMPRESSED:
            yield from _elements(memoryview(_inflate(content)), order)
            raw = raw[start + size :]  # the only element without padding
        else:
            yield Element(kind & 0xFFFF, content)
            raw = raw[8 if small else start + -(-size // 8) * 8 :]


def _inflate(content: memoryview) -> bytes:
    stream = zlib.decompressobj()
    unpacked = stream.decompress(content, LIMIT)
    if stream.unconsumed_tail or not stream.eof:
        raise ValueError("a compressed matrix is cut or too large")
    return unpacked


def _matrix(element: Element, order: str) -> tuple[str, np.ndarray] | None:
    """Name and values of a numeric matrix; None for anything else."""
    if element.kind != MATRIX:
        return None
    parts = list(_elements(element.content, order))
    flags = int(np.frombuffer(parts[0].content, f"{order}u4")[0])
    if flags & 0xFF not in NUMERIC_CLASSES:
        return None
    shape = np.frombuffer(parts[1].content, f"{order}i4").tolist()
    name, real = bytes(parts[2].content).decode("ascii"), parts[3]
    values = np.frombuffer(real.content, order + NUMBERS[real.kind])
    if min(shape) < 0 or math.prod(shape) != len(values):
        raise ValueError(f"matrix {name} is not of the size it declares")
    return name, values.reshape(shape, order="F")
