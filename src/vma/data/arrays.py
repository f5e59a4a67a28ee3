"""Reading arrays and compressed files that a stranger made: bounded in size, never unpickled."""

import gzip
import hashlib
import io
import math
import zipfile
import zlib
from pathlib import Path

import numpy as np

from vma.errors import InputError

BROKEN_ZIP = (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError)


def sha256_of(path: Path) -> str:
    """The sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_zip(path: Path, limit: int) -> zipfile.ZipFile:
    """The archive at `path`, refused if its entries declare more than `limit` bytes in all."""
    try:
        archive = zipfile.ZipFile(path)
    except BROKEN_ZIP as error:
        raise InputError(
            f"{path} is not a complete zip archive ({error}): delete it and get it again."
        ) from error
    declared = sum(entry.file_size for entry in archive.infolist())
    if declared > limit:
        archive.close()
        raise InputError(
            f"{path} unpacks to {declared} bytes, more than the {limit} expected: it was not read."
        )
    return archive


def read_entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """The bytes of one entry, with its checksum verified."""
    try:
        return archive.read(name)
    except BROKEN_ZIP as error:
        raise InputError(
            f"{archive.filename} is damaged at {name} ({error}): delete it and get it again."
        ) from error


def read_npy(content: bytes, source: str) -> np.ndarray:
    """The array in the bytes of an `.npy` file; pickled objects and false sizes are refused."""
    file = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, _, dtype = read_header(file)
    except (ValueError, KeyError, EOFError, SyntaxError) as error:
        raise InputError(f"{source} is not a valid .npy array ({error}): get the file again.") from error
    if dtype.hasobject:
        raise InputError(f"{source} holds pickled Python objects, which could run code: it was not read.")
    if math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise InputError(f"{source} does not have the size its header declares: get the file again.")
    return np.load(io.BytesIO(content), allow_pickle=False)


def read_npz(path: Path, limit: int = 2**28) -> dict[str, np.ndarray]:
    """All arrays of an `.npz` file by name."""
    with open_zip(path, limit) as archive:
        names = archive.namelist()
        if odd := [name for name in names if not name.endswith(".npy")]:
            raise InputError(f"{path} holds {odd[0]!r}, which is not an array: it was not read.")
        return {
            name.removesuffix(".npy"): read_npy(read_entry(archive, name), f"{path}:{name}") for name in names
        }


def read_maybe_gzip(path: Path, limit: int) -> bytes:
    """The content of a file, unpacked if it begins like gzip; at most `limit` bytes."""
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
