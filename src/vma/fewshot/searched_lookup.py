"""An image looked up in a memory on disk: q(a|x) over what a search found, with a bound for the whole memory."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.bounds import BoundTerms
from vma.fewshot.lookup import LookUp
from vma.large.searched import SearchedItems
from vma.memory import KeyedMemory, Memory
from vma.model import VMA
from vma.proposals import NOWHERE


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
