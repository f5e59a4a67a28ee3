"""Tensors and a header of text in one file: written whole, and compared with its checksum when it is read.

Models, checkpoints and memories are such files: safetensors, and nothing pickled.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from vma.errors import InputError
from vma.files import check_ordinary, from_outside, write_atomically

Tensors = dict[str, Tensor]
Header = dict[str, str]


@dataclass(frozen=True)
class FileKind:
    """A kind of file.

    Attributes:
        format: The name of the format, as it stands in the header.
        noun: What errors call such a file.
        version: The newest version that this package reads.
    """

    format: str
    noun: str
    version: int = 1


def tensor_bytes(kind: FileKind, header: Mapping[str, str], tensors: Mapping[str, Tensor]) -> bytes:
    """The content of a file of this kind: its format, header and tensors, with a checksum of all of them."""
    kept = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    whole = {"format": kind.format, "version": str(kind.version), **header}
    return save(kept, metadata={**whole, "checksum": checksum(whole, kept)})


def write_tensors(
    path: Path, kind: FileKind, header: Mapping[str, str], tensors: Mapping[str, Tensor]
) -> None:
    """Write a file of this kind, atomically."""
    write_atomically(path, tensor_bytes(kind, header, tensors))


def read_tensors(path: Path, kind: FileKind) -> tuple[Header, Tensors]:
    """Header and tensors of a file of this kind; a file whose checksum does not agree is refused."""
    check_ordinary(path, f"{kind.noun} file")
    with from_outside(f"{path} is not a {kind.noun} file, or is damaged"):
        file = safe_open(path, framework="pt")
        header = dict(file.metadata() or {})
    check_header(path, kind, header)
    with from_outside(f"{path} is damaged"):
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if "checksum" in header and header.pop("checksum") != checksum(header, tensors):  # older files have none
        raise InputError(f"{path} is damaged: it does not hold what was written. Put back a copy of it.")
    return header, tensors


def read_header(path: Path, kind: FileKind) -> Header:
    """The header alone of a file of this kind: fast, and without comparing the checksum."""
    check_ordinary(path, f"{kind.noun} file")
    with from_outside(f"{path} is not a {kind.noun} file, or is damaged"):
        header = dict(safe_open(path, framework="pt").metadata() or {})
    check_header(path, kind, header)
    return header


def check_header(path: Path, kind: FileKind, header: Mapping[str, str]) -> None:
    """Refuse a file of another kind, or of a later version."""
    if header.get("format") != kind.format:
        raise InputError(f"{path} is a safetensors file, but not one of a vma {kind.noun}.")
    version = header.get("version", "1")
    if not (version.isascii() and version.isdecimal()) or len(version) > 9 or int(version) > kind.version:
        raise InputError(
            f"{path} has format version {version[:20]!r}, newer than this vma reads: update vma."
        )


def checksum(header: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """A hash of everything in a file, in a fixed order."""
    digest = hashlib.sha256()
    for name, text in sorted(header.items()):
        digest.update(f"{len(name)} {len(text)} {name}{text}".encode(errors="surrogatepass"))
    for part in tensor_parts(tensors):
        digest.update(part)
    return digest.hexdigest()


def tensor_parts(tensors: Mapping[str, Tensor]) -> Iterator[bytes | memoryview]:
    """Name, kind, shape and bytes of every tensor, in the order of their names."""
    for name, tensor in sorted(tensors.items()):
        yield f"{name} {tensor.dtype} {list(tensor.shape)}".encode(errors="surrogatepass")
        yield tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
