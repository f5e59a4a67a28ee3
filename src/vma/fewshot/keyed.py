"""A memory with its keys: what depends on the items alone is computed once, and carried along."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vma.addressing import AddressDistribution
from vma.bounds import BoundTerms
from vma.checks import is_whole
from vma.errors import InputError
from vma.memory import Memory
from vma.model import VMA
from vma.reads import draw
from vma.similarity import by_coordinate

AT_ONCE = 256  # images that a network sees at a time, so that a large memory stays small in use


@dataclass(frozen=True, eq=False)
class KeyedMemory:
    """M with k_a = h(m_a) of every item, and the model that made them.

    Attributes:
        model: The model.
        memory: M; its items have the type of the weights.
        keys: k_a, stored as a query reads them.
    """

    model: VMA
    memory: Memory
    keys: Float[Tensor, "memory matching"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", by_coordinate(self.keys))

    @staticmethod
    def of(model: VMA, items: Float[Tensor, "memory *image"]) -> "KeyedMemory":
        """The memory of `items`, with keys computed now; they must be images that the model gives a probability."""
        model.likelihood.check("images", items)
        items = items.to(next(model.parameters()))
        with torch.no_grad():
            return KeyedMemory(model, Memory(items), model.addressing.keys(Memory(items)))

    def __len__(self) -> int:
        return len(self.memory)

    def keep(self, a: Int[Tensor, "kept"]) -> "KeyedMemory":
        """The items at `a` alone."""
        return KeyedMemory(self.model, self.memory.keep(a), self.keys[a])

    def join(self, other: "KeyedMemory") -> "KeyedMemory":
        """The items of both, those of `other` last."""
        return KeyedMemory(self.model, self.memory.join(other.memory), torch.cat((self.keys, other.keys)))

    def only(self, mask: Bool[Tensor, "memory"]) -> "KeyedMemory":
        """The same items and addresses, of which only those in the mask can be read."""
        return replace(self, memory=replace(self.memory, mask=mask))

    def prior(self) -> AddressDistribution:
        """p(a)."""
        return self.model.addressing.prior(self.memory, self.keys)

    def posterior(self, x: Float[Tensor, "batch *image"]) -> AddressDistribution:
        """q(a|x)."""
        return self.model.addressing.posterior(x, self.memory, self.keys)

    def terms(
        self, x: Float[Tensor, "batch *image"], samples: int, generator: torch.Generator | None
    ) -> BoundTerms:
        """The terms of the bound, as `VMA.terms` gives them, without computing the keys again."""
        q_a = self.posterior(x)
        reads = draw(q_a, samples, self.memory, "independent", generator)
        shape = (*reads.addresses.shape, self.model.config.latent)
        noise = torch.randn(shape, dtype=x.dtype, device=x.device, generator=generator)
        return self.model.terms_at(x, self.memory, self.prior(), q_a, reads, noise)

    def numbers(self, items: Any) -> list[int]:
        """One or more numbers of items, checked."""
        values = np.atleast_1d(np.asarray(items)).tolist()
        if not values or any(type(i) is not int or not 0 <= i < len(self) for i in values):
            raise InputError(f"Items are numbered from 0 to {len(self) - 1}, so {items!r} names none.")
        return values

    def number(self, item: Any) -> int:
        """The number of one item, checked."""
        first, *others = self.numbers(item)
        if others:
            raise InputError(f"Name one item, not {1 + len(others)}.")
        return first

    def generator(self, seed: int | None) -> torch.Generator | None:
        """Randomness of that seed on the model's device; None leaves it to torch's own."""
        if seed is None:
            return None
        if not is_whole(seed) or not 0 <= seed < 2**63:
            raise InputError(f"The seed must be a whole number from 0 to 2^63 − 1, not {seed!r}.")
        return torch.Generator(self.keys.device).manual_seed(int(seed))
