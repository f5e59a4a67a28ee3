"""p(a) of a memory that is never gone through: each item's mass, and their sum as a whole number that is kept."""

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.columns import Column

SCALE = 80  # masses are whole multiples of 2^-80
BLOCK = 1024  # items whose masses are summed: an address is drawn by block, and then within it
PART = 1 << 22  # items whose halves of 40 bits are summed in 63 bits


def masses_of(scores: Float[np.ndarray, "items"], ceiling: float) -> Float[np.ndarray, "items"]:
    """exp(s_a − ceiling), rounded down to a multiple of 2^-80, for every item; at most 1 where s_a ≤ ceiling."""
    exact = np.exp(np.asarray(scores, np.float64) - ceiling)
    return np.ldexp(np.floor(np.ldexp(exact, SCALE)), -SCALE)


def units(masses: Float[np.ndarray, "items"]) -> int:
    """Σ 2^80 mass, exactly: sums of inserts, deletes and shards add up whatever their order.

    A mass has 53 significant bits; its whole 40-bit halves are floats without rounding, and are summed as integers.
    """
    total = 0
    for first in range(0, len(masses), PART):
        scaled = np.ldexp(masses[first : first + PART].astype(np.float64), SCALE // 2)
        high = np.floor(scaled)
        low = np.ldexp(scaled - high, SCALE // 2)
        total += (int(high.astype(np.int64).sum()) << (SCALE // 2)) + int(low.astype(np.int64).sum())
    return total


class MassPrior:
    """p(a) = 2^80 mass_a / Z, with Z = Σ 2^80 mass as a whole number: probabilities add up to 1 exactly.

    Args:
        masses: Of all items, in parts.
        total: Z, of the items that are not forgotten.
        forgotten: Addresses that have no mass any more, sorted.
    """

    def __init__(
        self, masses: Sequence[np.ndarray], total: int | None = None, forgotten: np.ndarray | None = None
    ) -> None:
        self.masses = Column(masses, np.empty(0))
        self.forgotten = np.empty(0, np.int64) if forgotten is None else np.asarray(forgotten, np.int64)
        everything = sum(units(part) for part in masses) if total is None else total
        self.total = everything - units(self.masses[self.forgotten]) if total is None else everything

    def __len__(self) -> int:
        return len(self.masses) - len(self.forgotten)

    @property
    def log_total(self) -> float:
        """log Σ mass."""
        return math.log(self.total) - SCALE * math.log(2) if self.total else -math.inf

    def without(self, addresses: Int[Tensor, "gone"]) -> "MassPrior":
        """p(a) of all other addresses."""
        inside = addresses[(addresses >= 0) & (addresses < len(self.masses))]
        gone = np.setdiff1d(inside.cpu().numpy(), self.forgotten)
        rest = self.total - units(self.masses[gone])
        return MassPrior(self.masses.parts, rest, np.union1d(self.forgotten, gone))

    def alive(self, addresses: Int[np.ndarray, "*rows"]) -> np.ndarray:
        """Which addresses are those of items that are not forgotten."""
        known = (addresses >= 0) & (addresses < len(self.masses))
        return known & ~np.isin(addresses, self.forgotten)

    def mass(self, addresses: Int[np.ndarray, "*rows"]) -> Float[np.ndarray, "*rows"]:
        """mass_a; 0 of a forgotten item."""
        alive = self.alive(addresses)
        return np.where(alive, self.masses[np.where(alive, addresses, 0)], 0.0)

    def log_prob(self, a: Int[Tensor, "*reads"]) -> Float[Tensor, "*reads"]:
        """log p(a)."""
        mass = torch.from_numpy(np.asarray(self.mass(a.cpu().numpy())))
        return mass.log() - self.log_total

    @cached_property
    def blocks(self) -> Float[np.ndarray, "blocks"]:
        """Σ mass of the items not forgotten, block by block."""
        sums = [np.add.reduceat(part, range(0, len(part), BLOCK)) for part in self.masses.parts if len(part)]
        found = np.concatenate(sums) if sums else np.empty(0)
        homes = np.searchsorted(self.starts, self.forgotten, side="right") - 1
        for home in np.unique(homes):
            found[home] = self.inside(home)[1].sum()
        return found

    @cached_property
    def starts(self) -> Int[np.ndarray, "blocks"]:
        """First address of each block: none reaches over the end of a part."""
        ends = self.masses.ends
        spans = [np.arange(first, last, BLOCK) for first, last in pairwise(ends)]
        return np.concatenate(spans) if spans else np.empty(0, np.int64)

    def inside(self, block: int | np.integer) -> tuple[np.ndarray, np.ndarray]:
        """Addresses and masses of a block."""
        last = int(self.starts[block + 1]) if block + 1 < len(self.starts) else len(self.masses)
        addresses = np.arange(self.starts[block], last)
        return addresses, self.mass(addresses)

    @torch.no_grad()
    def sample(self, samples: int, generator: torch.Generator | None = None) -> Int[Tensor, "samples"]:
        """a ~ p(a): a block in proportion to its mass, then an item in it."""
        uniform = torch.rand((2, samples), dtype=torch.float64, generator=generator).numpy()
        home, drawn = by_mass(self.blocks, uniform[0]), np.empty(samples, np.int64)
        for block in np.unique(home):
            addresses, masses = self.inside(block)
            drawn[home == block] = addresses[by_mass(masses, uniform[1, home == block])]
        return torch.from_numpy(drawn)

    def entropy(self) -> Tensor:
        """H(p) = log Σ mass − Σ mass log mass / Σ mass, in nats; goes through all masses once."""
        return torch.tensor(self.entropy_value)

    @cached_property
    def entropy_value(self) -> float:
        """H(p)."""
        found = 0.0
        for block in range(0, len(self.masses), PART):
            addresses = np.arange(block, min(block + PART, len(self.masses)))
            mass = self.mass(addresses)
            found += float((mass * np.log(np.where(mass > 0, mass, 1.0))).sum())
        return self.log_total - found / math.exp(self.log_total)


def by_mass(masses: Float[np.ndarray, "choices"], uniform: Float[np.ndarray, "samples"]) -> np.ndarray:
    """min {i : Σ_{j ≤ i} mass_j > u Σ mass} for each u; a choice of no mass is never made."""
    cumulative = np.cumsum(masses)
    point = np.minimum(uniform * cumulative[-1], np.nextafter(cumulative[-1], 0))
    return np.searchsorted(cumulative, point, side="right")
