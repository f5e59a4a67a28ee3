"""One segment: consecutive items with their keys, masses, labels and sources in a safetensors file."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from jaxtyping import Float, Int, UInt8
from safetensors.numpy import save

from vma.errors import InputError
from vma.files import write_atomically
from vma.large.manifest import Entry

TYPES = {"U8": np.uint8, "F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64}
SUFFIX = ".safetensors"


@dataclass(frozen=True)
class Rows:
    """Some items.

    Attributes:
        items: The images, as 8-bit levels of ink.
        keys: k_a.
        masses: exp(s_a − ceiling), rounded to a multiple of 2^-80.
        labels: Number of each label, or −1.
        sources: Where each item came from, as text; empty where nobody said.
        names: Number and text of the labels that are new.
    """

    items: UInt8[np.ndarray, "items *image"]
    keys: Float[np.ndarray, "items matching"]
    masses: Float[np.ndarray, "items"]
    labels: Int[np.ndarray, "items"]
    sources: tuple[str, ...]
    names: tuple[tuple[int, str], ...] = ()

    def __len__(self) -> int:
        return len(self.items)


def write_segment(folder: Path, name: str, rows: Rows) -> Entry:
    """Write a segment; it belongs to the memory once a manifest names it."""
    texts = [source.encode() for source in rows.sources]
    return write_table(folder, name, len(rows), {
        "items": rows.items,
        "keys": rows.keys.astype(np.float32),
        "masses": rows.masses.astype(np.float64),
        "labels": rows.labels.astype(np.int32),
        "source_ends": np.cumsum([len(text) for text in texts], dtype=np.int64),
        "source_text": np.frombuffer(b"".join(texts), np.uint8),
        "names": as_bytes(rows.names),
    })  # fmt: skip


def write_table(folder: Path, name: str, rows: int, columns: Mapping[str, np.ndarray]) -> Entry:
    """Write some columns to a file, and say what it is."""
    content = save({key: np.ascontiguousarray(column) for key, column in columns.items()})
    write_atomically(folder / f"{name}{SUFFIX}", content)
    return Entry(name, rows, len(content), hashlib.sha256(content).hexdigest())


def read_table(folder: Path, entry: Entry) -> dict[str, np.ndarray]:
    """The columns of a file, mapped into memory: nothing is read before it is asked for."""
    path = folder / f"{entry.name}{SUFFIX}"
    size = path.stat().st_size
    if size != entry.size:
        raise InputError(
            f"{path} has {size} bytes instead of {entry.size}: it was cut short or changed; "
            "bring it back from a copy, or build the memory again."
        )
    whole = np.memmap(path, np.uint8, "r")
    start = 8 + int.from_bytes(whole[:8].tobytes(), "little")
    header = msgspec.json.decode(whole[8:start].tobytes())
    found = {}
    for name, about in header.items():
        if name == "__metadata__":
            continue
        first, last = about["data_offsets"]
        flat = whole[start + first : start + last].view(TYPES[about["dtype"]])
        found[name] = np.asarray(flat.reshape(about["shape"]))  # as a memmap, each read would cost more
    return found


def as_bytes(names: Sequence[tuple[int, str]]) -> UInt8[np.ndarray, "bytes"]:
    """Numbered labels as a column."""
    return np.frombuffer(msgspec.json.encode(list(names)), np.uint8)


def as_names(column: UInt8[np.ndarray, "bytes"]) -> list[tuple[int, str]]:
    """The numbered labels in a column."""
    return msgspec.json.decode(column.tobytes(), type=list[tuple[int, str]])


def sources_of(columns: Mapping[str, np.ndarray], rows: Int[np.ndarray, "some"]) -> list[str]:
    """Where some items of a segment came from."""
    ends, text = columns["source_ends"], columns["source_text"]
    starts = np.concatenate(([0], ends[:-1]))
    return [text[starts[row] : ends[row]].tobytes().decode() for row in rows]


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
