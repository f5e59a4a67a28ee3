"""What an index of keys can do, and what it is given to be opened."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from vma.errors import InputError

NOWHERE = -1  # address in place of an item that was not found
NO_LABEL = -1  # number of an item without a label
FEW = 64  # times as many items as are asked for: of so few, the best are found without an index

Addresses = Int[np.ndarray, "items"]
Keys = Float[np.ndarray, "items matching"]


@dataclass(frozen=True)
class Found:
    """What a search found for each query, the best first.

    Attributes:
        addresses: Of the items; `NOWHERE` where there are fewer.
        scores: <k_a, q>, as exactly as the index knows it; −∞ where there are fewer.
    """

    addresses: Int[np.ndarray, "batch top"]
    scores: Float[np.ndarray, "batch top"]


@dataclass(frozen=True)
class Place:
    """Where an index is, and of what.

    Attributes:
        folder: Where it keeps its files.
        matching: Size of a key.
        items: How many items it is for, about: an index may be made differently for more of them.
        keys: The exact keys at some addresses, which are on disk.
        labels: The number of the label of every address, or `NO_LABEL`; also of an item that is forgotten.
        sample: So many keys at random, to be learned from.
        server: Address of the engine, for an index that has one.
        name: What a shared engine is to call it.
        model: Fingerprint of the model whose keys these are.
    """

    folder: Path
    matching: int
    items: int
    keys: Callable[[Addresses], Keys]
    labels: Callable[[], Addresses]
    sample: Callable[[int], Keys]
    server: str = ""
    name: str = "memory"
    model: str = ""


def check_server(server: str) -> str:
    """The same address; refuse one with a password in it: a memory's folder is no place for one."""
    if "@" in server:
        raise InputError(
            "The address of an index has no user and password, as it is written in the memory's folder: set "
            "VMA_INDEX_TOKEN to USER:PASSWORD instead."
        )
    return server


@runtime_checkable
class Index(Protocol):
    """Keys by their addresses. An entry point of the group `vma.indexes` names a function from a `Place` to one.

    What an index loses or finds too much of costs tightness alone: probabilities are not its business. It may
    be asked to add an address that it has, or to delete one that it has not.

    >>> keys, labels = np.eye(3, dtype=np.float32), np.zeros(3, np.int64)
    >>> place = vma.index.Place(Path("index"), 3, 3, keys.__getitem__, lambda: labels, lambda count: keys[:count])
    >>> index = vma.parts.INDEXES["exact"](place)
    >>> index.add(np.arange(3), keys, labels)
    >>> found = index.search(2 * keys[[1]], top=2)
    >>> isinstance(index, vma.index.Index), isinstance(found, vma.index.Found)
    (True, True)
    >>> int(found.addresses[0, 0]), float(found.scores[0, 0])
    (1, 2.0)
    """

    def add(self, addresses: Addresses, keys: Keys, labels: Addresses) -> None:
        """Take these keys in, each with the number of its label or `NO_LABEL`."""

    def delete(self, addresses: Addresses) -> None:
        """Find these no more."""

    def search(
        self, queries: Float[np.ndarray, "batch matching"], top: int, label: int | None = None
    ) -> Found:
        """The `top` items of largest <k_a, q> for each query, among those of a label or all."""

    def count(self) -> int:
        """How many items can be found."""

    def __iter__(self) -> Iterator[int]:
        """Their addresses."""

    def save(self) -> None:
        """Keep all of this; what was not saved may be gone when the index is opened again."""


def best(scores: Float[np.ndarray, "batch some"], addresses: np.ndarray, top: int) -> Found:
    """The `top` best of some, sorted; a score of −∞ is that of nothing found."""
    width = scores.shape[1]
    if width > top:
        chosen = np.argpartition(-scores, top - 1, axis=1)[:, :top]
        scores, addresses = (np.take_along_axis(each, chosen, 1) for each in (scores, addresses))
    order = np.argsort(-scores, axis=1, kind="stable")
    scores, addresses = (np.take_along_axis(each, order, 1) for each in (scores, addresses))
    if width < top:
        scores = np.pad(scores, ((0, 0), (0, top - width)), constant_values=-np.inf)
        addresses = np.pad(addresses, ((0, 0), (0, top - width)))
    return Found(np.where(scores == -np.inf, NOWHERE, addresses), scores)


def few(queries: np.ndarray, top: int, label: int, place: Place) -> Found | None:
    """The `top` best of a label by the exact keys on disk; None if it has so many items that these take long."""
    there = np.flatnonzero(place.labels() == label)
    if len(there) > FEW * top:
        return None
    scores = queries.astype(np.float32) @ place.keys(there).astype(np.float32).T
    return best(scores, np.broadcast_to(there, scores.shape), top)


def rescored(queries: np.ndarray, addresses: np.ndarray, top: int, place: Place) -> Found:
    """The `top` best of the addresses found, by their exact keys."""
    keys = place.keys(np.maximum(addresses, 0))
    scores = np.einsum("bd,btd->bt", queries, keys, dtype=np.float32)
    return best(np.where(addresses == NOWHERE, -np.inf, scores), addresses, top)
