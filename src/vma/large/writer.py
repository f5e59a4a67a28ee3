"""Changing a memory on disk: each change is there whole when it is acknowledged, or not at all."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import numpy as np
from filelock import FileLock, Timeout

from vma.errors import InputError
from vma.files import remove_partial_files
from vma.index import NO_LABEL
from vma.large.manifest import FILE, Entry, Manifest, write_manifest
from vma.large.segments import (
    SUFFIX,
    Rows,
    as_bytes,
    as_names,
    sources_of,
    write_segment,
    write_table,
)
from vma.large.snapshot import SEGMENTS, Numbers, Snapshot, is_large, open_snapshot, snapshot_of
from vma.masses import masses_of, units

MOST = 65_536  # items of a segment
LOCK = ".lock"
COLUMNS = ("items", "keys", "masses", "labels")


def create(folder: Path, manifest: Manifest) -> None:
    """An empty memory; the folder must be new or empty."""
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} exists and is not empty: choose another folder, or 'add' to a memory.")
    write_manifest(folder, manifest)


class Writer:
    """The one process that may change a memory.

    New files are written first; the manifest, which names them and holds Z, then replaces the old one at once.
    Until it has, readers and whoever starts after a crash see the memory as it was, with probabilities of sum 1.
    """

    def __init__(self, folder: Path) -> None:
        if not is_large(folder):
            raise InputError(f"{folder} is not a memory: it has no {FILE}.")
        self.folder, self.lock = folder, hold(folder)
        try:
            self.snapshot = open_snapshot(folder)
            self.tidy()
        except BaseException:
            self.lock.release()
            raise

    def __enter__(self) -> "Writer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lock.release()

    @property
    def manifest(self) -> Manifest:
        """What there is now."""
        return self.snapshot.manifest

    def tidy(self) -> None:
        """Remove files that no manifest names: what a killed process left, or what was merged."""
        known = {entry.name for entry in self.manifest.segments}
        known |= {self.manifest.changes.name} if self.manifest.changes else set()
        remove_partial_files(self.folder)
        remove_partial_files(self.folder / SEGMENTS)
        for path in (self.folder / SEGMENTS).glob(f"*{SUFFIX}"):
            if path.stem not in known and not (self.manifest.rekeying and path.stem.startswith("rekeyed-")):
                with suppress(OSError):
                    path.unlink()

    def commit(self, **changes: object) -> Snapshot:
        """Acknowledge: from here on the memory is what the changed manifest says."""
        manifest = replace(self.manifest, generation=self.manifest.generation + 1, **changes)  # type: ignore[arg-type]
        write_manifest(self.folder, manifest)
        self.snapshot = snapshot_of(self.folder, manifest)
        self.tidy()
        return self.snapshot

    def name(self, number: int = 0) -> str:
        """Of a file that the next change writes."""
        return f"{self.manifest.generation + 1:08}-{number:04}"

    def add(
        self,
        items: np.ndarray,
        keys: np.ndarray,
        scores: np.ndarray,
        labels: Sequence[str | None],
        sources: Sequence[str] = (),
    ) -> range:
        """Keep these items with their keys and s_a, and say their addresses, all at once."""
        first, numbers, names = self.manifest.rows, *self.numbered(labels)
        masses = masses_of(scores, self.manifest.ceiling)
        rows = Rows(items, keys, masses, numbers, tuple(sources) or ("",) * len(items), names)
        kept, small = self.to_merge(len(rows))
        merged = joined([*(as_rows(self.snapshot, i) for i in small), rows])
        parts = [slice(i, i + MOST) for i in range(0, len(merged), MOST)]
        entries = [
            write_segment(self.folder / SEGMENTS, self.name(i), cut(merged, part))
            for i, part in enumerate(parts)
        ]
        total = int(self.manifest.total) + units(masses)
        self.commit(segments=(*kept, *entries), total=str(total))
        return range(first, first + len(rows))

    def numbered(self, labels: Sequence[str | None]) -> tuple[np.ndarray, tuple[tuple[int, str], ...]]:
        """The number of each label, and those labels that are new."""
        known, new = self.snapshot.numbers, dict[str, int]()
        start = max(known.values(), default=-1) + 1
        for label in labels:
            if label is not None and label not in known and label not in new:
                new[label] = start + len(new)
        numbers = [NO_LABEL if label is None else known.get(label, new.get(label, 0)) for label in labels]
        return np.array(numbers, np.int32), tuple((number, name) for name, number in new.items())

    def to_merge(self, rows: int) -> tuple[tuple[Entry, ...], list[int]]:
        """The segments that stay, and those at the end that so many new rows are to be written together with."""
        segments, first = self.manifest.segments, len(self.manifest.segments)
        while first and segments[first - 1].rows <= 2 * rows and segments[first - 1].rows + rows <= MOST:
            first -= 1
            rows += segments[first].rows
        return segments[:first], list(range(first, len(segments)))

    def forget(self, addresses: Numbers) -> None:
        """Forget the items at these addresses; their numbers are never given to others."""
        gone = self.snapshot.check(addresses)
        if len(gone) == len(self.snapshot):
            raise InputError("Forgetting every item would leave an empty memory: keep at least one.")
        total = int(self.manifest.total) - units(self.snapshot.prior.masses[gone])
        self.change(forgotten=np.union1d(self.snapshot.forgotten, gone), total=total)

    def relabel(self, addresses: Numbers, label: str | None) -> None:
        """Give the items at these addresses another label."""
        chosen = self.snapshot.check(addresses)
        (number,), names = self.numbered([label])
        old = self.snapshot.changes
        pairs = (old[name].tolist() if old else [] for name in ("relabelled", "labels"))
        moved: dict[int, int] = dict(zip(*pairs, strict=True))
        moved |= dict.fromkeys(chosen.tolist(), number)
        items = np.array(sorted(moved), np.int64)
        numbers = np.array([moved[each] for each in items.tolist()], np.int32)
        self.change(relabelled=items, labels=numbers, names=as_bytes((*self.old_names(), *names)))

    def old_names(self) -> list[tuple[int, str]]:
        """Labels that came by relabelling."""
        return as_names(self.snapshot.changes["names"]) if self.snapshot.changes else []

    def change(self, total: int | None = None, **columns: np.ndarray) -> None:
        """Acknowledge another table of changes."""
        nothing: dict[str, np.ndarray] = {
            "forgotten": np.empty(0, np.int64),
            "relabelled": np.empty(0, np.int64),
            "labels": np.empty(0, np.int32),
            "names": as_bytes(()),
        }
        table = {**nothing, **self.snapshot.changes, **columns}
        entry = write_table(self.folder / SEGMENTS, self.name(), len(table["forgotten"]), table)
        self.commit(changes=entry, total=self.manifest.total if total is None else str(total))


def as_rows(snapshot: Snapshot, segment: int) -> Rows:
    """A segment, read whole."""
    table = snapshot.tables[segment]
    sources = tuple(sources_of(table, np.arange(len(table["masses"]))))
    columns = {name: np.asarray(table[name]) for name in COLUMNS}
    return Rows(**columns, sources=sources, names=tuple(as_names(table["names"])))


def joined(several: Sequence[Rows]) -> Rows:
    """The rows of all."""
    if len(several) == 1:
        return several[0]
    columns = {name: np.concatenate([getattr(each, name) for each in several]) for name in COLUMNS}
    sources = tuple(source for each in several for source in each.sources)
    return Rows(**columns, sources=sources, names=tuple(name for each in several for name in each.names))


def cut(rows: Rows, part: slice) -> Rows:
    """Some of the rows; the labels go with the first of them."""
    columns = {name: getattr(rows, name)[part] for name in COLUMNS}
    return Rows(**columns, sources=rows.sources[part], names=rows.names if part.start == 0 else ())


def hold(folder: Path) -> FileLock:
    """Keep other writers away: two would overwrite each other's changes."""
    lock = FileLock(folder / LOCK, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(
            f"{folder} is being changed by another process: wait until that is done, or end it."
        ) from None
    except OSError as error:
        raise InputError(f"Cannot change {folder}: {error.strerror}.") from None
    return lock
