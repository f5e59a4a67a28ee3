"""Images looked up in a memory: what the matching networks say, computed once for all questions about them."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from vma.addressing import AddressDistribution
from vma.bounds import BoundTerms
from vma.memory import KeyedMemory, Memory
from vma.model import VMA


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
