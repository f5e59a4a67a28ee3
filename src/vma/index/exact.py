"""The exact index: all keys in memory, and every query goes through all of them."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from vma.index.protocol import Addresses, Found, Keys, Place, best


class ExactIndex:
    """<k_a, q> of every item: nothing is lost; a query to a million takes tens of milliseconds."""

    def __init__(self, place: Place) -> None:
        self.keys: np.ndarray = np.empty((0, place.matching), np.float32)
        self.addresses: np.ndarray = np.empty(0, np.int64)
        self.labels: np.ndarray = np.empty(0, np.int64)

    def add(self, addresses: Addresses, keys: Keys, labels: Addresses) -> None:
        """Take these keys in."""
        self.delete(addresses)
        self.keys = np.concatenate((self.keys, keys.astype(np.float32)))
        self.addresses = np.concatenate((self.addresses, addresses))
        self.labels = np.concatenate((self.labels, labels))

    def delete(self, addresses: Addresses) -> None:
        """Find these no more."""
        kept = ~np.isin(self.addresses, addresses)
        if not kept.all():
            self.keys, self.addresses = self.keys[kept], self.addresses[kept]
            self.labels = self.labels[kept]

    def search(
        self, queries: Float[np.ndarray, "batch matching"], top: int, label: int | None = None
    ) -> Found:
        """The best of all."""
        scores = queries.astype(np.float32) @ self.keys.T
        if label is not None:
            scores[:, self.labels != label] = -np.inf
        return best(scores, np.broadcast_to(self.addresses, scores.shape), top)

    def count(self) -> int:
        """How many items can be found."""
        return len(self.addresses)

    def __iter__(self) -> Iterator[int]:
        return iter(self.addresses.tolist())

    def save(self) -> None:
        """Nothing: it is made of the keys on disk whenever it is opened."""
