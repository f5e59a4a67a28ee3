"""A memory on disk as it is at one moment: columns that are read by address, p(a), labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Int

from vma.columns import Column
from vma.errors import InputError, unknown_name
from vma.index import Place
from vma.large.manifest import FILE, Manifest, read_manifest
from vma.large.segments import as_names, read_table, sources_of
from vma.masses import MassPrior

SEGMENTS, INDEX = "segments", "index"
SHOWN = 50  # labels in an error
TRIES = 5  # a writer may have replaced files since the manifest was read


Numbers = int | Sequence[int] | np.ndarray  # of items


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What a folder held when it was opened; a writer that goes on does not disturb it.

    Attributes:
        folder: Of the memory.
        manifest: What it says that there is.
        tables: The columns of each segment.
        changes: What was forgotten and relabelled.
    """

    folder: Path
    manifest: Manifest
    tables: Sequence[dict[str, np.ndarray]]
    changes: dict[str, np.ndarray]

    @property
    def rows(self) -> int:
        """How many addresses there are, also of what is forgotten."""
        return self.manifest.rows

    def __len__(self) -> int:
        return self.rows - len(self.forgotten)

    def column(self, name: str, empty: np.ndarray) -> Column:
        """A column of all segments."""
        return Column([table[name] for table in self.tables], empty)

    @cached_property
    def items(self) -> Column:
        """The images, as 8-bit levels."""
        return self.column("items", np.empty((0, *self.manifest.shape), np.uint8))

    @cached_property
    def keys(self) -> Column:
        """k_a."""
        return self.column("keys", np.empty((0, self.manifest.matching), np.float32))

    @cached_property
    def forgotten(self) -> Int[np.ndarray, "gone"]:
        """Addresses whose items are forgotten, sorted."""
        return np.asarray(self.changes.get("forgotten", np.empty(0, np.int64)))

    @cached_property
    def prior(self) -> MassPrior:
        """p(a)."""
        masses = [table["masses"] for table in self.tables]
        return MassPrior(masses, int(self.manifest.total), self.forgotten)

    @cached_property
    def labels(self) -> Int[np.ndarray, "rows"]:
        """Number of every address's label, or −1."""
        labels = self.column("labels", np.empty(0, np.int32)).slice(0, self.rows)
        if "relabelled" in self.changes:
            labels = labels.copy()
            labels[self.changes["relabelled"]] = self.changes["labels"]
        return labels

    @cached_property
    def names(self) -> dict[int, str]:
        """The text of every label, by its number."""
        tables = [*self.tables, self.changes] if self.changes else self.tables
        return dict(pair for table in tables for pair in as_names(table["names"]))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of every label."""
        return {name: number for number, name in self.names.items()}

    def texts(self, addresses: Int[np.ndarray, "some"]) -> tuple[str | None, ...]:
        """The label of each address."""
        numbers = self.labels[addresses].tolist()
        return tuple(None if number < 0 else self.names[number] for number in numbers)

    def of_label(self, label: str) -> Int[np.ndarray, "some"]:
        """The addresses of a label, of which there is one or more."""
        number = self.numbers.get(label, -2)
        found: np.ndarray = np.setdiff1d(np.flatnonzero(self.labels == number), self.forgotten)
        if not len(found):
            some = list(self.numbers)[:SHOWN]
            raise unknown_name("label", label, some or ["none, since no item has a label"])
        return found

    def sources(self, addresses: Sequence[int] | np.ndarray) -> list[str]:
        """Where the items at some addresses came from."""
        ends = self.keys.ends
        homes = np.searchsorted(ends, addresses, side="right") - 1
        pairs = zip(homes, addresses, strict=True)
        return [sources_of(self.tables[home], np.array([each - ends[home]]))[0] for home, each in pairs]

    def all_sources(self) -> set[str]:
        """Where all items came from: what a build has done already."""
        return {
            text for table in self.tables for text in sources_of(table, np.arange(len(table["source_ends"])))
        }

    def alive(self) -> Int[np.ndarray, "items"]:
        """The addresses of all items."""
        return np.setdiff1d(np.arange(self.rows), self.forgotten, assume_unique=True)

    def check(self, addresses: Numbers) -> Int[np.ndarray, "some"]:
        """Some addresses, of which each is that of an item."""
        found = np.atleast_1d(np.asarray(addresses))
        if found.dtype.kind not in "iu" or not len(found) or not self.prior.alive(found).all():
            raise InputError(
                f"{self.folder} has no items {np.atleast_1d(addresses)[:5].tolist()}: numbers go from 0 to "
                f"{self.rows - 1}, without those of items that are forgotten."
            )
        return np.unique(found.astype(np.int64))

    def sample(self, count: int) -> np.ndarray:
        """So many keys, spread evenly over all that there are."""
        alive = self.alive()
        return self.keys[alive[np.linspace(0, len(alive) - 1, min(count, len(alive))).astype(np.int64)]]

    def place(self) -> Place:
        """What an index of this is to know."""
        return Place(
            folder=self.folder / INDEX,
            matching=self.manifest.matching,
            items=len(self),
            keys=self.keys.__getitem__,
            labels=lambda: self.labels,
            sample=self.sample,
            server=self.manifest.server,
            name=f"vma_{self.manifest.collection or 'memory'}_{self.manifest.model[:12]}",
            model=self.manifest.model,
        )


def is_large(path: Path) -> bool:
    """Whether a folder is a memory of this kind."""
    return (path / FILE).is_file()


def open_snapshot(folder: Path) -> Snapshot:
    """The memory in a folder, as it is now."""
    for last in (*[False] * (TRIES - 1), True):
        manifest = read_manifest(folder)
        try:
            return snapshot_of(folder, manifest)
        except FileNotFoundError as error:
            if last:
                raise InputError(f"{error.filename} is missing: {folder} is not whole.") from None
    raise AssertionError


def snapshot_of(folder: Path, manifest: Manifest) -> Snapshot:
    """What the manifest says that there is."""
    tables = [read_table(folder / SEGMENTS, entry) for entry in manifest.segments]
    changes = {} if manifest.changes is None else read_table(folder / SEGMENTS, manifest.changes)
    return Snapshot(folder, manifest, tables, changes)
