"""The manifest: what a memory's folder holds at one moment. It is replaced as a whole, and all else hangs on it."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from vma.errors import InputError
from vma.files import write_atomically

FORMAT = "vma-large-memory"
VERSION = 1
FILE = "memory.json"


@dataclass(frozen=True)
class Entry:
    """A segment: consecutive items in one file.

    Attributes:
        name: Of its file.
        rows: How many items.
        size: Bytes of the file.
        sha256: Of its content.
    """

    name: str
    rows: int
    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What there is.

    Attributes:
        model: Fingerprint of the model whose keys these are.
        model_name: What that model was called.
        shape: Of an item.
        matching: Size of a key.
        ceiling: s_a is at most this, if that is known: masses are exp(s_a − ceiling).
        total: Z, the sum of all masses of items not forgotten, in units of 2^-80, as text: it has some 110 bits.
        segments: All items, in the order of their addresses.
        changes: File of what was forgotten and relabelled, if anything was.
        generation: Grows with every change, and names the files that it writes.
        index: `auto`, or the name of an index.
        server: Address of its engine, for one that has an engine.
        collection: What the engine calls it: of no other memory, and another one whenever an index is chosen.
        sharpness: β of the proposal, as it was fitted to this memory.
        rekeying: Fingerprint of the model that new keys are being made with, while they are.
        format: Says what this is.
        version: Of the format.
    """

    model: str
    model_name: str
    shape: tuple[int, ...]
    matching: int
    ceiling: float
    total: str = "0"
    segments: tuple[Entry, ...] = ()
    changes: Entry | None = None
    generation: int = 0
    index: str = "auto"
    server: str = ""
    collection: str = ""
    sharpness: float = 1.0
    rekeying: str = ""
    format: str = FORMAT
    version: int = VERSION

    @property
    def rows(self) -> int:
        """How many addresses there are, also of what is forgotten."""
        return sum(entry.rows for entry in self.segments)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """From now on the folder holds this."""
    write_atomically(folder / FILE, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")


def read_manifest(folder: Path) -> Manifest:
    """What the folder holds."""
    path = folder / FILE
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise InputError(f"{folder} is not a memory: it has no {FILE}.") from None
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        raise InputError(f"{path} cannot be read as that of a memory: it is damaged.") from None
    if found.format != FORMAT:
        raise InputError(f"{path} is not that of a memory.")
    if found.version > VERSION:
        raise InputError(f"{path} has version {found.version}, newer than this vma reads: update vma.")
    return found
