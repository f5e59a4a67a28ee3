"""The index of a memory on disk: opened with what was saved of it, and brought up to what the memory holds."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from vma.errors import InputError, missing_extra
from vma.files import write_atomically
from vma.index import Index
from vma.index.protocol import check_server
from vma.large.snapshot import INDEX, Snapshot
from vma.parts import INDEXES

FILE = "index.json"
AUTO = "auto"
HERE = (AUTO, "exact", "faiss")  # indexes that are on no server
EXACT_MOST = 100_000  # items up to which every key is gone through
PART = 16_384  # keys that an index takes at a time
GROWTH = 4  # times as many items as lists were learned for: then they are learned anew

Progress = Callable[[int, int], None]  # done, of how many


@dataclass(frozen=True)
class Saved:
    """What was saved of an index.

    Attributes:
        name: Which index.
        rows: It holds what it found at addresses below this.
        changes: Digest of what was forgotten and relabelled then.
        items: How many it was made for.
        model: Fingerprint of the model whose keys these are.
    """

    name: str
    rows: int
    items: int
    model: str
    changes: str = ""


def chosen(snapshot: Snapshot, name: str | None = None) -> str:
    """The name of the index of a memory: its own, or by how large it is."""
    wanted = name or snapshot.manifest.index
    if wanted != AUTO:
        return wanted
    return "exact" if len(snapshot) <= EXACT_MOST else "faiss"


def read_saved(folder: Path) -> Saved | None:
    """What was saved, if anything was."""
    try:
        return msgspec.json.decode((folder / INDEX / FILE).read_bytes(), type=Saved)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return None


def fits(saved: Saved | None, snapshot: Snapshot, name: str) -> bool:
    """Whether what was saved can be gone on with."""
    return (
        saved is not None
        and (saved.name, saved.model) == (name, snapshot.manifest.model)
        and saved.rows <= snapshot.rows
        and len(snapshot) <= GROWTH * max(saved.items, 1)
    )


def open_index(snapshot: Snapshot, name: str | None = None, progress: Progress | None = None) -> Index:
    """The index of what is in memory now; it takes in what was added since it was saved."""
    kind = chosen(snapshot, name)
    saved = read_saved(snapshot.folder)
    if kind != "exact" and not fits(saved, snapshot, kind):
        discard(snapshot.folder)
        saved = None
    try:
        index = INDEXES[kind](snapshot.place())
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None
    start = 0 if saved is None or kind == "exact" or index.count() == 0 else saved.rows
    take_in(index, snapshot, start, progress)
    known = saved.changes if saved is not None else ""
    if (start or kind not in HERE) and changes_of(snapshot) != known:
        catch_up(index, snapshot, kind)
    return index


def changes_of(snapshot: Snapshot) -> str:
    """Digest of what is forgotten and relabelled."""
    changes = snapshot.manifest.changes
    return changes.sha256 if changes else ""


def catch_up(index: Index, snapshot: Snapshot, kind: str) -> None:
    """Delete what is forgotten, and tell a server the labels that have changed; other indexes read them here."""
    index.delete(snapshot.forgotten)
    moved = np.setdiff1d(snapshot.changes["relabelled"], snapshot.forgotten)
    if kind not in HERE and len(moved):
        index.add(moved, snapshot.keys[moved], snapshot.labels[moved].astype(np.int64))


def take_in(index: Index, snapshot: Snapshot, start: int, progress: Progress | None) -> None:
    """Add all items from address `start` on."""
    for first in range(start, snapshot.rows, PART):
        last = min(first + PART, snapshot.rows)
        addresses = np.setdiff1d(np.arange(first, last), snapshot.forgotten, assume_unique=True)
        if len(addresses):
            index.add(addresses, snapshot.keys[addresses], snapshot.labels[addresses].astype(np.int64))
        if progress is not None:
            progress(last - start, snapshot.rows - start)


def save_index(snapshot: Snapshot, index: Index, name: str | None = None) -> None:
    """Keep the index; only the one writer of a memory may."""
    kind, before = chosen(snapshot, name), read_saved(snapshot.folder)
    index.save()
    items = before.items if fits(before, snapshot, kind) and before is not None else len(snapshot)
    saved = Saved(kind, snapshot.rows, items, snapshot.manifest.model, changes_of(snapshot))
    write_atomically(snapshot.folder / INDEX / FILE, msgspec.json.encode(saved))


def discard(folder: Path) -> None:
    """Forget what was saved of an index: it is of other keys, of another kind, or too small."""
    for path in (folder / INDEX).glob("*"):
        path.unlink()


def with_index(snapshot: Snapshot, name: str, server: str) -> Snapshot:
    """The same memory, which from now on is searched by another index."""
    if name != AUTO and name not in INDEXES:
        raise InputError(f"Unknown index {name!r}: choose one of {', '.join((AUTO, *INDEXES))}.")
    engine = {"index": name, "server": check_server(server), "collection": new_collection(name)}
    return replace(snapshot, manifest=replace(snapshot.manifest, **engine))  # type: ignore[arg-type]


def new_collection(index: str) -> str:
    """What the server of an index is to call a memory, differently each time; nothing for one without a server."""
    return "" if index in HERE else secrets.token_hex(8)
