"""Which addresses are read, and how what is computed once per item or pair reaches every read."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.addressing import AddressDistribution
from vma.errors import InputError, unknown_name
from vma.estimators.without_replacement import log_mass_of_set
from vma.memory import Memory


@dataclass(frozen=True)
class Reads:
    """K addresses for each of B targets.

    Attributes:
        addresses: a.
        log_mass: Share of q(a|x) that each read stands for (see `BoundTerms`).
        log_rest: Log of q(a|x)'s mass on what was not read, for distinct reads.
        choice: One-hot rows with a straight-through gradient, or None where reads have no gradient.
    """

    addresses: Int[Tensor, "batch samples"]
    log_mass: Float[Tensor, "batch samples"]
    log_rest: Float[Tensor, "batch"] | None = None
    choice: Float[Tensor, "batch samples memory"] | None = None

    def log_prob(self, distribution: AddressDistribution) -> Float[Tensor, "batch samples"]:
        """log P(a) of every read; for straight-through reads it has a gradient in a."""
        if self.choice is None:
            return distribution.log_prob(self.addresses)
        log_probs = distribution.log_probs
        finite = log_probs.masked_fill(log_probs == -torch.inf, 0.0)
        return (self.choice * finite.unsqueeze(-2)).sum(-1)


@dataclass(frozen=True)
class HardGather:
    """Rows for every read, from features computed once per unique item and once per unique pair.

    Attributes:
        items: The unique addresses.
        read_item: Row of `items` that each read uses, reads in the order (target, sample).
        pair_target: Target of each unique (target, address) pair.
        pair_item: Row of `items` of each pair.
        read_pair: The pair of each read.
    """

    items: Int[Tensor, "items"]
    read_item: Int[Tensor, "reads"]
    pair_target: Int[Tensor, "pairs"]
    pair_item: Int[Tensor, "pairs"]
    read_pair: Int[Tensor, "reads"]

    @staticmethod
    def of(addresses: Int[Tensor, "batch samples"]) -> "HardGather":
        """The unique items and pairs among `addresses`."""
        items, read_item = torch.unique(addresses, return_inverse=True)
        targets = torch.arange(len(addresses), device=addresses.device).unsqueeze(1)
        pairs, read_pair = torch.unique(targets * len(items) + read_item, return_inverse=True)
        target, item = pairs // len(items), pairs % len(items)
        return HardGather(items, read_item.flatten(), target, item, read_pair.flatten())

    def to_reads(self, of_items: Tensor) -> Tensor:
        """One row per read, from one row per item."""
        return of_items.index_select(0, self.read_item)

    def items_of_pairs(self, of_items: Tensor) -> Tensor:
        """One row per pair, from one row per item."""
        return of_items.index_select(0, self.pair_item)

    def targets_of_pairs(self, of_targets: Tensor) -> Tensor:
        """One row per pair, from one row per target."""
        return of_targets.index_select(0, self.pair_target)

    def pairs_to_reads(self, of_pairs: Tensor) -> Tensor:
        """One row per read, from one row per pair."""
        return of_pairs.index_select(0, self.read_pair)


@dataclass(frozen=True)
class StraightThroughGather:
    """Rows for every read as Σ_a choice_a f_a: the value of the item read, a gradient to every address.

    Every read is a pair of its own, because its gradient is its own, and features are needed for all of M.
    """

    items: Int[Tensor, "items"]
    choice: Float[Tensor, "reads items"]
    samples: int

    @staticmethod
    def of(choice: Float[Tensor, "batch samples memory"]) -> "StraightThroughGather":
        """The gather of a straight-through `choice`."""
        items = torch.arange(choice.shape[-1], device=choice.device)
        return StraightThroughGather(items, choice.flatten(0, 1), choice.shape[1])

    def to_reads(self, of_items: Tensor) -> Tensor:
        """One row per read, from one row per item."""
        return torch.tensordot(self.choice, of_items, dims=1)

    def items_of_pairs(self, of_items: Tensor) -> Tensor:
        """One row per pair, which is a read, from one row per item."""
        return self.to_reads(of_items)

    def targets_of_pairs(self, of_targets: Tensor) -> Tensor:
        """One row per pair, which is a read, from one row per target."""
        return of_targets.repeat_interleave(self.samples, dim=0)

    def pairs_to_reads(self, of_pairs: Tensor) -> Tensor:
        """The rows themselves."""
        return of_pairs


def gather(reads: Reads) -> HardGather | StraightThroughGather:
    """How features reach the reads."""
    return HardGather.of(reads.addresses) if reads.choice is None else StraightThroughGather.of(reads.choice)


def independent(
    q_a: AddressDistribution, samples: int, memory: Memory, generator: torch.Generator | None = None
) -> Reads:
    """a_k ~ q(a|x), K times."""
    addresses = q_a.sample(samples, generator)
    return Reads(addresses, q_a.log_probs.new_full(addresses.shape, -math.log(samples)))


def all_addresses(
    q_a: AddressDistribution, samples: int, memory: Memory, generator: torch.Generator | None = None
) -> Reads:
    """Every address in use, `samples` times: sums over a are exact, z is sampled."""
    batch = q_a.log_probs.shape[0]
    addresses = memory.addresses().repeat_interleave(samples).expand(batch, -1)
    return Reads(addresses, q_a.log_prob(addresses) - math.log(samples))


def without_replacement(
    q_a: AddressDistribution, samples: int, memory: Memory, generator: torch.Generator | None = None
) -> Reads:
    """The K addresses of largest log q(a|x) + Gumbel noise: K distinct ones."""
    if samples > len(memory.addresses()):
        raise InputError(
            f"{samples} distinct addresses cannot be drawn from {len(memory.addresses())} memory items: "
            "lower K, or add items."
        )
    log_probs = q_a.log_probs.detach()
    addresses = (log_probs + q_a.gumbel_noise(generator)).topk(samples, dim=-1).indices
    log_rest = log_probs.scatter(-1, addresses, -torch.inf).logsumexp(-1)
    return Reads(addresses, log_mass_of_set(log_probs.gather(-1, addresses), log_rest), log_rest)


def straight_through(
    q_a: AddressDistribution,
    samples: int,
    memory: Memory,
    generator: torch.Generator | None = None,
    temperature: float = 1.0,
) -> Reads:
    """a_k = arg-max of log q(a|x) + g, with the gradient of softmax((log q(a|x) + g) / τ)."""
    repeated = AddressDistribution(q_a.log_probs.unsqueeze(1).expand(-1, samples, -1))
    perturbed = repeated.log_probs + repeated.gumbel_noise(generator).to(q_a.log_probs)
    soft = (perturbed / temperature).softmax(-1)
    addresses = perturbed.argmax(-1)
    hard = torch.nn.functional.one_hot(addresses, len(memory)).to(soft)
    mass = soft.new_full(addresses.shape, -math.log(samples))
    return Reads(addresses, mass, choice=hard + (soft - soft.detach()))


SAMPLINGS: dict[str, Callable[[AddressDistribution, int, Memory, torch.Generator | None], Reads]] = {
    "independent": independent,
    "all": all_addresses,
    "without-replacement": without_replacement,
    "straight-through": straight_through,
}


def draw(
    q_a: AddressDistribution, samples: int, memory: Memory, sampling: str, generator: torch.Generator | None
) -> Reads:
    """Reads from q(a|x), drawn as `sampling` says."""
    if sampling not in SAMPLINGS:
        raise unknown_name("sampling", sampling, SAMPLINGS)
    return SAMPLINGS[sampling](q_a, samples, memory, generator)
