"""Whether a memory on disk is whole: digests, probabilities, and what its index loses."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from vma.errors import InputError
from vma.index import Index
from vma.large.indexing import Progress
from vma.large.manifest import Entry
from vma.large.segments import SUFFIX, digest_of
from vma.large.snapshot import SEGMENTS, Snapshot
from vma.masses import SCALE, units

QUERIES = 16
PART = 65_536  # keys that are compared at a time


@dataclass(frozen=True)
class Checked:
    """What was found.

    Attributes:
        items: How many there are.
        found: How many of them the index has.
        mass: Σ p(a) over all items.
        nats_lost: −log of the share of softmax S that the search finds, on average over some queries.
        most_lost: The largest of these.
    """

    items: int
    found: int
    mass: float
    nats_lost: float
    most_lost: float


def files_of(snapshot: Snapshot) -> Iterator[Entry]:
    """All files of items."""
    yield from snapshot.manifest.segments
    if snapshot.manifest.changes is not None:
        yield snapshot.manifest.changes


def check_files(snapshot: Snapshot, progress: Progress) -> None:
    """Refuse a file whose content is not what was written."""
    entries = list(files_of(snapshot))
    for number, entry in enumerate(entries):
        path: Path = snapshot.folder / SEGMENTS / f"{entry.name}{SUFFIX}"
        if digest_of(path) != entry.sha256:
            raise InputError(f"{path} is damaged: bring it back from a copy, or build the memory again.")
        progress(number + 1, len(entries))


def check(
    snapshot: Snapshot, index: Index, queries: Float[np.ndarray, "batch matching"], top: int
) -> Checked:
    """Sums and counts, and the index against a search through all keys."""
    masses = (np.asarray(table["masses"]) for table in snapshot.tables)
    total = sum(units(part) for part in masses) - units(snapshot.prior.masses[snapshot.forgotten])
    lost = nats_lost(snapshot, index, queries, top)
    mass = total / int(snapshot.manifest.total)
    if total != int(snapshot.manifest.total):
        raise InputError(
            f"The masses of {snapshot.folder} add up to {total / 2**SCALE:.6g}, but it says "
            f"{int(snapshot.manifest.total) / 2**SCALE:.6g}: build the memory again."
        )
    return Checked(len(snapshot), index.count(), mass, float(lost.mean()), float(lost.max()))


def nats_lost(
    snapshot: Snapshot, index: Index, queries: Float[np.ndarray, "batch matching"], top: int
) -> Float[np.ndarray, "batch"]:
    """−log Σ_{a in C} softmax S(a) of each query, with C what the index finds: what a bound loses at the least."""
    everything = np.full((len(queries), 1), -np.inf)
    for first in range(0, snapshot.rows, PART):
        addresses = np.arange(first, min(first + PART, snapshot.rows))
        alive = np.setdiff1d(addresses, snapshot.forgotten, assume_unique=True)
        scores = (queries @ snapshot.keys[alive].T).astype(np.float64)
        both = np.concatenate((everything, scores), 1)
        everything = np.logaddexp.reduce(both, axis=1, keepdims=True)
    found = index.search(queries, top)
    exact = np.einsum("bd,btd->bt", queries, snapshot.keys[np.maximum(found.addresses, 0)])
    exact = np.where(snapshot.prior.alive(found.addresses), exact.astype(np.float64), -np.inf)
    return np.maximum(everything[:, 0] - np.logaddexp.reduce(exact, axis=1), 0.0)
