"""What a model reads of a memory on disk: items by address, p(a), and what the index finds."""

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.index import NOWHERE, Index
from vma.large.snapshot import Snapshot
from vma.masses import MassPrior
from vma.proposals import EPSILON

CANDIDATES = 256  # that a search is asked for
SPARE = 16  # more that the index is asked for, in place of those that are forgotten


@dataclass(frozen=True, eq=False)
class SearchedItems:
    """A memory on disk as a model reads it, `vma.proposals.SearchedMemory`.

    Attributes:
        snapshot: The items.
        index: What finds them.
        p_a: p(a).
        candidates: How many a search finds.
        epsilon: Share of the reads that go to p(a), wherever the search has looked.
        sharpness: β, by which the scores of what is found are multiplied when reads are drawn.
        hidden: Addresses that are not to be found, sorted.
    """

    snapshot: Snapshot
    index: Index
    p_a: MassPrior = field(repr=False)
    candidates: int = CANDIDATES
    epsilon: float = EPSILON
    hidden: Int[np.ndarray, "hidden"] = field(default_factory=lambda: np.empty(0, np.int64))
    sharpness: float = 1.0

    @staticmethod
    def of(
        snapshot: Snapshot, index: Index, candidates: int = CANDIDATES, epsilon: float = EPSILON
    ) -> "SearchedItems":
        """All that a snapshot holds."""
        sharpness = snapshot.manifest.sharpness
        return SearchedItems(
            snapshot, index, snapshot.prior, candidates, epsilon, snapshot.forgotten, sharpness
        )

    def __len__(self) -> int:
        return self.snapshot.rows

    def read(self, a: Int[Tensor, "*reads"]) -> Float[Tensor, "*reads_and_item"]:
        """m_a for every address in `a`."""
        return torch.from_numpy(self.snapshot.items[a.cpu().numpy()]).float() / 255

    def keys(self, a: Int[Tensor, "*reads"]) -> Float[Tensor, "*reads_and_key"]:
        """k_a for every address in `a`."""
        return torch.from_numpy(self.snapshot.keys[a.cpu().numpy()])

    def prior(self) -> MassPrior:
        """p(a)."""
        return self.p_a

    def search(self, queries: Float[Tensor, "batch matching"]) -> Int[Tensor, "batch candidates"]:
        """The best of what the index finds, without what is hidden and what it finds twice."""
        wanted = queries.detach().cpu().float().numpy()
        found = self.index.search(wanted, self.candidates + SPARE).addresses
        return torch.from_numpy(self.seen(found)[:, : self.candidates])

    def seen(self, addresses: Int[np.ndarray, "batch top"]) -> Int[np.ndarray, "batch top"]:
        """`NOWHERE` in place of what is hidden, unknown or there twice; all others first."""
        hidden = (addresses >= self.snapshot.rows) | (addresses < 0) | twice(addresses)
        if len(self.hidden):
            hidden |= np.isin(addresses, self.hidden)
        if not hidden.any():
            return addresses
        order = np.argsort(hidden, axis=1, kind="stable")
        return np.take_along_axis(np.where(hidden, NOWHERE, addresses), order, 1)

    def without(self, addresses: Int[np.ndarray, "gone"]) -> "SearchedItems":
        """The same as if it did not hold these items."""
        p_a = self.p_a.without(torch.from_numpy(np.asarray(addresses, np.int64)))
        return replace(self, p_a=p_a, hidden=p_a.forgotten)


def twice(addresses: Int[np.ndarray, "batch top"]) -> np.ndarray:
    """Where a row has an address that it has had before."""
    order = np.argsort(addresses, axis=1, kind="stable")
    again = np.zeros(addresses.shape, bool)
    again[:, 1:] = np.diff(np.take_along_axis(addresses, order, 1), axis=1) == 0
    found = np.empty_like(again)
    np.put_along_axis(found, order, again, 1)
    return found
