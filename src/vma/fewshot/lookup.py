"""Images looked up in a memory: what the matching networks say, computed once for all questions about them."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.addressing import AddressDistribution
from vma.bounds import BoundTerms
from vma.large.searched import SearchedItems
from vma.memory import KeyedMemory, Memory
from vma.model import VMA
from vma.proposals import NOWHERE


@dataclass(frozen=True, eq=False)
class LookUp:
    """e^q(x) and q(a|x) of images, given a memory. Every question to a memory starts from one.

    Attributes:
        model: The model.
        keyed: The memory.
        x: The images.
        queries: e^q(x) of each.
        q_a: q(a|x) of each.
    """

    model: VMA
    keyed: KeyedMemory
    x: Float[Tensor, "batch *image"]
    queries: Float[Tensor, "batch matching"]
    q_a: AddressDistribution

    @torch.no_grad()
    def terms(self, samples: int, generator: torch.Generator | None) -> BoundTerms:
        """The terms of the bound at `samples` reads of each image."""
        return self.model.terms(self.x, self.keyed, samples, q_a=self.q_a, generator=generator)

    def given(self, keyed: KeyedMemory) -> "LookUp":
        """The same images looked up in another memory."""
        return replace(self, keyed=keyed, q_a=self.model.addressing.matched(self.queries, keyed))

    def alone(self) -> "LookUp":
        """One image, given a memory that holds only that image: q(a|x) = 1, whatever its key."""
        return self.given(KeyedMemory(Memory(self.x), torch.ones_like(self.queries)))


@torch.no_grad()
def look_up(model: VMA, keyed: KeyedMemory, x: Float[Tensor, "batch *image"]) -> LookUp:
    """Look every image up, with one call of the query network."""
    queries = model.addressing.queries(x)
    return LookUp(model, keyed, x, queries, model.addressing.matched(queries, keyed))


@dataclass(frozen=True, eq=False)
class SearchedLookUp(LookUp):
    """e^q(x) of one image, and softmax_C S over the items that a search found for it.

    Attributes:
        memory: The whole memory.
        items: The numbers of the items found; `keyed` holds them in this order.
    """

    memory: SearchedItems
    items: Int[np.ndarray, "found"]

    @torch.no_grad()
    def terms(self, samples: int, generator: torch.Generator | None) -> BoundTerms:
        """The terms of the bound for the whole memory; the best candidates are summed exactly."""
        return self.model.terms(self.x, self.memory, samples, sampling="stratified", generator=generator)

    def given(self, keyed: KeyedMemory) -> LookUp:
        """The same image looked up in another memory, which is held whole."""
        q_a = self.model.addressing.matched(self.queries, keyed)
        return LookUp(self.model, keyed, self.x, self.queries, q_a)


@torch.no_grad()
def search_for(model: VMA, memory: SearchedItems, x: Float[Tensor, "1 *image"]) -> SearchedLookUp:
    """Look one image up in a memory on disk."""
    queries = model.addressing.queries(x)
    found = memory.search(model.addressing.similarity.queries(queries))[0]
    items = found[found != NOWHERE].numpy()
    keyed = keyed_items(model, memory, items)
    return SearchedLookUp(model, keyed, x, queries, model.addressing.matched(queries, keyed), memory, items)


def keyed_items(model: VMA, memory: SearchedItems, items: Int[np.ndarray, "some"]) -> KeyedMemory:
    """Some items with their keys, as a memory that is held whole."""
    like, a = next(model.parameters()), torch.from_numpy(items)
    return KeyedMemory(Memory(memory.read(a).to(like)), memory.keys(a).to(like))
