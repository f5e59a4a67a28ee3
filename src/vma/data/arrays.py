"""Reading arrays and compressed files from outside: bounded in size, never unpickled."""

import gzip
import hashlib
import io
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from vma.errors import InputError
from vma.limits import ARCHIVE, ELEMENTS, MATRICES, UNPACKED, check_members

BROKEN_ZIP = (
    zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, RuntimeError, ValueError, LookupError,
)  # fmt: skip
BROKEN_NPY = (ValueError, LookupError, EOFError, SyntaxError, TypeError, tokenize.TokenError, RecursionError)
BROKEN_MAT = (zlib.error, struct.error, OSError, LookupError, ValueError, TypeError)
BYTE_ORDERS = {b"IM": "<", b"MI": ">"}  # the last two bytes of a MATLAB file's header
MATRIX, COMPRESSED = (
    14,
    15,
)  # types of a MATLAB file's elements, and those of numbers with their size in bytes
NUMBERS = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8}
NUMERIC_CLASSES, COMPLEX = range(6, 16), 0x800  # flags; other classes are text, cells, structures


def sha256_of(path: Path) -> str:
    """The sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_zip(path: Path, limit: int) -> zipfile.ZipFile:
    """The archive at `path`, refused if its entries may unpack to more than `limit` bytes in all."""
    try:
        archive = zipfile.ZipFile(path)
    except BROKEN_ZIP as error:
        raise InputError(
            f"{path} is not a complete zip archive ({error}): delete it and get it again."
        ) from error
    try:
        check_members(archive.infolist(), str(path), limit)
    except InputError:
        archive.close()
        raise
    return archive


def read_entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """The bytes of one entry, with its checksum verified; no more is unpacked than the entry declares."""
    try:
        with archive.open(name) as entry:
            return entry.read(archive.getinfo(name).file_size)
    except BROKEN_ZIP as error:
        raise InputError(
            f"{archive.filename} is damaged at {name} ({error}): delete it and get it again."
        ) from error


def read_npy(content: bytes, source: str) -> np.ndarray:
    """The array in the bytes of an `.npy` file; pickled objects and wrong sizes are refused."""
    file = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = read_header(file)
    except BROKEN_NPY as error:
        raise InputError(f"{source} is not a valid .npy array ({error}): get the file again.") from error
    if dtype.hasobject:
        raise InputError(f"{source} holds pickled Python objects, which could run code: it was not read.")
    if math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise InputError(f"{source} does not have the size its header declares: get the file again.")
    return np.load(io.BytesIO(content), allow_pickle=False)


def read_npz(path: Path, limit: int = ARCHIVE) -> dict[str, np.ndarray]:
    """All arrays of an `.npz` file by name."""
    with open_zip(path, limit) as archive:
        names = archive.namelist()
        if odd := [name for name in names if not name.endswith(".npy")]:
            raise InputError(f"{path} holds {odd[0]!r}, which is not an array: it was not read.")
        return {
            name.removesuffix(".npy"): read_npy(read_entry(archive, name), f"{path}:{name}") for name in names
        }


def read_maybe_gzip(path: Path, limit: int) -> bytes:
    """The content of a file, unpacked if it begins like gzip; refused beyond `limit` bytes."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as file:
            content = file.read(limit + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error}): delete it and get it again.") from error
    if len(content) > limit:
        raise InputError(f"{path} holds more than the {limit} bytes expected: it was not read.")
    return content


def read_mat(path: Path, limit: int = UNPACKED) -> dict[str, np.ndarray]:
    """The real numeric matrices of a MATLAB 5 file by name.

    Each is unpacked and checked before scipy reads it. scipy trusts the file: one wrong byte in the type of an
    element can crash Python, and a small file can unpack to gigabytes.
    """
    from scipy.io import loadmat  # here, because it takes longer to import than everything else

    raw = memoryview(read_maybe_gzip(path, limit))
    matrices: dict[str, np.ndarray] = {}
    try:
        order = BYTE_ORDERS[bytes(raw[126:128])]
        header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(f"{order}H", 0x100) + raw[126:128]
        for matrix in numeric_matrices(raw[128:], order, limit):
            matrices |= loadmat(io.BytesIO(b"".join((header, *matrix))))
    except BROKEN_MAT as error:
        raise InputError(
            f"{path} is not a complete MATLAB 5 file ({error}): delete it and get it again."
        ) from error
    return {name: values for name, values in matrices.items() if not name.startswith("__")}


def numeric_matrices(raw: memoryview, order: str, limit: int) -> Iterator[tuple[bytes, memoryview]]:
    """The real numeric matrices of a MATLAB file as head and content, unpacked to at most `limit` bytes in all."""
    found = 0
    for kind, content in mat_elements(raw, order):
        if kind == COMPRESSED:
            unpacked = inflate(content, limit)
            limit -= len(unpacked)
            [(kind, content)] = mat_elements(memoryview(unpacked), order)
        if kind == MATRIX and is_numeric(content, order):
            found += 1
            if found > MATRICES:
                raise ValueError(f"it holds more than {MATRICES} matrices")
            yield struct.pack(f"{order}II", MATRIX, len(content)), content


def mat_elements(raw: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Type and content of the elements in `raw`, one after the other.

    An element consists of its type and length (4 bytes each), its content, and padding to 8 bytes unless it is
    compressed. A small element has its length in the upper half of the type, and up to 4 bytes of content after it.
    """
    for _ in range(ELEMENTS):
        if len(raw) < 8:
            return
        kind, length = struct.unpack(f"{order}II", raw[:8])
        small = kind >> 16
        start, size = (4, small) if small else (8, length)
        if start + size > len(raw) or small > 4:
            raise ValueError("it ends too early")
        yield kind & 0xFFFF, raw[start : start + size]
        raw = raw[start + size if kind == COMPRESSED else -(-(start + size) // 8) * 8 :]
    raise ValueError(f"it has more than {ELEMENTS} elements")


def inflate(content: memoryview, limit: int) -> bytes:
    """A zlib stream unpacked, refused if it is cut short or holds more than `limit` bytes."""
    stream = zlib.decompressobj()
    unpacked = stream.decompress(content, limit + 1)
    if len(unpacked) > limit or not stream.eof:
        raise ValueError("a compressed matrix is cut or too large")
    return unpacked


def is_numeric(matrix: memoryview, order: str) -> bool:
    """Whether a matrix holds real numbers: flags, sizes, a name, and one element of as many numbers as declared."""
    (_, flags), (_, sizes), _, *values = mat_elements(matrix, order)
    (flag_bits,) = struct.unpack(f"{order}I", flags[:4])
    if flag_bits & 0xFF not in NUMERIC_CLASSES or flag_bits & COMPLEX:
        return False
    count = math.prod(struct.unpack(f"{order}{len(sizes) // 4}i", sizes))
    if [len(content) / NUMBERS.get(kind, math.nan) for kind, content in values] != [count]:
        raise ValueError("a matrix is not of the size it declares")
    return True
