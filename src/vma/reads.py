"""Which addresses are read, and how features computed once per item or pair reach every read."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.addressing import AddressDistribution, Distribution
from vma.bounds import BoundTerms
from vma.chunks import slices
from vma.errors import InputError, unknown_name
from vma.memory import Memory
from vma.subsets import log_mass_of_set


@dataclass(frozen=True)
class Reads:
    """K addresses for each of B targets.

    Attributes:
        addresses: a.
        log_mass: Share of q(a|x) that each read stands for (see `BoundTerms`).
        log_rest: Log of q(a|x)'s mass on the addresses that were not read; only for distinct reads.
        choice: One-hot rows with a straight-through gradient; None where reads have no gradient.
    """

    addresses: Int[Tensor, "batch samples"]
    log_mass: Float[Tensor, "batch samples"]
    log_rest: Float[Tensor, "batch"] | None = None
    choice: Float[Tensor, "batch samples memory"] | None = None

    def log_prob(self, distribution: Distribution) -> Float[Tensor, "batch samples"]:
        """log P(a) of every read; straight-through reads also pass a gradient to a."""
        if self.choice is None or not isinstance(distribution, AddressDistribution):
            return distribution.log_prob(self.addresses)
        log_probs = distribution.log_probs
        finite = log_probs.masked_fill(log_probs == -torch.inf, 0.0)
        return (self.choice * finite.unsqueeze(-2)).sum(-1)


ALL = slice(None)
PILOT = 4  # with `adaptive`, one read in four first finds out where p(a|x) lies
FEWEST_ADAPTIVE = 2 * PILOT  # with fewer reads, a pilot does not pay


@dataclass(frozen=True)
class HardGather:
    """The unique items and pairs among reads; what is computed once for each of them reaches every read.

    Items are sorted, and pairs and reads follow their order, so that the reads of an item stand together.

    Attributes:
        items: The unique addresses.
        reads: The index of each read in the order (target, sample), from 0 to B · K − 1.
        read_target: Target of each read.
        read_item: Row of `items` that each read uses.
        read_pair: The pair of each read.
        pair_target: Target of each unique (target, address) pair.
        pair_item: Row of `items` of each pair.
    """

    items: Int[Tensor, "items"]
    reads: Int[Tensor, "reads"]
    read_target: Int[Tensor, "reads"]
    read_item: Int[Tensor, "reads"]
    read_pair: Int[Tensor, "reads"]
    pair_target: Int[Tensor, "pairs"]
    pair_item: Int[Tensor, "pairs"]

    @staticmethod
    def of(addresses: Int[Tensor, "batch samples"]) -> "HardGather":
        """The unique items and pairs among `addresses`."""
        batch, samples = addresses.shape
        items, item = torch.unique(addresses.flatten(), return_inverse=True)
        read_item, reads = item.sort(stable=True)
        read_target = reads // samples
        pairs, read_pair = torch.unique(read_item * batch + read_target, return_inverse=True)
        return HardGather(items, reads, read_target, read_item, read_pair, pairs % batch, pairs // batch)

    def blocks(self, size: int) -> Iterable["HardGather"]:
        """Blocks of at most `size` items with all their pairs and reads; a single block if `size` is 0."""
        if not size:
            yield self
            return
        for part in slices(len(self.items), size):
            ends = torch.tensor([part.start, part.stop], device=self.items.device)
            first, last = torch.searchsorted(self.read_item, ends).tolist()
            pair, pair_end = torch.searchsorted(self.pair_item, ends).tolist()
            yield HardGather(
                self.items[part],
                self.reads[first:last],
                self.read_target[first:last],
                self.read_item[first:last] - part.start,
                self.read_pair[first:last] - pair,
                self.pair_target[pair:pair_end],
                self.pair_item[pair:pair_end] - part.start,
            )

    @property
    def pairs(self) -> int:
        """Number of unique (target, address) pairs."""
        return len(self.pair_target)

    def to_reads(self, of_items: Tensor) -> Tensor:
        """One row per read, from one row per item."""
        return of_items.index_select(0, self.read_item)

    def halves(
        self, of_items: tuple[Tensor, ...], part: slice
    ) -> tuple[tuple[Tensor, ...], list[int] | None]:
        """Rows for the reads of `part`: one per read; without a gradient, one per item with its number of reads."""
        rows = self.read_item[part]
        if torch.is_grad_enabled():
            return tuple(half.index_select(0, rows) for half in of_items), None
        items, counts = rows.unique_consecutive(return_counts=True)
        first, last = items[[0, -1]].tolist()
        return tuple(half[first : last + 1] for half in of_items), counts.tolist()

    def items_of_pairs(self, of_items: Tensor, part: slice = ALL) -> Tensor:
        """One row per pair, from one row per item."""
        return of_items.index_select(0, self.pair_item[part])

    def targets_of_pairs(self, of_targets: Tensor, part: slice = ALL) -> Tensor:
        """One row per pair, from one row per target."""
        return of_targets.index_select(0, self.pair_target[part])

    def pairs_to_reads(self, of_pairs: Tensor) -> Tensor:
        """One row per read, from one row per pair."""
        return of_pairs.index_select(0, self.read_pair)


@dataclass(frozen=True)
class StraightThroughGather:
    """Rows for every read as Σ_a choice_a f_a: the value of the item read, with a gradient to every address.

    Each read is its own pair, because its gradient is its own; features of all of M are needed.
    """

    items: Int[Tensor, "items"]
    reads: Int[Tensor, "reads"]
    read_target: Int[Tensor, "reads"]
    choice: Float[Tensor, "reads items"]

    @staticmethod
    def of(choice: Float[Tensor, "batch samples memory"]) -> "StraightThroughGather":
        """The gather of a straight-through `choice`."""
        flat, reads = choice.flatten(0, 1), torch.arange(choice[..., 0].numel(), device=choice.device)
        items = torch.arange(choice.shape[-1], device=choice.device)
        return StraightThroughGather(items, reads, reads // choice.shape[1], flat)

    def blocks(self, size: int) -> Iterable["StraightThroughGather"]:
        """A single block, since every read needs all items."""
        return [self]

    @property
    def pairs(self) -> int:
        """Number of pairs, which is that of reads."""
        return len(self.reads)

    def to_reads(self, of_items: Tensor, part: slice = ALL) -> Tensor:
        """One row per read, from one row per item."""
        return torch.tensordot(self.choice[part], of_items, dims=1)

    def halves(self, of_items: tuple[Tensor, ...], part: slice) -> tuple[tuple[Tensor, ...], None]:
        """One row for each read of `part`."""
        return tuple(self.to_reads(half, part) for half in of_items), None

    def items_of_pairs(self, of_items: Tensor, part: slice = ALL) -> Tensor:
        """One row per pair (here, per read) from one row per item."""
        return self.to_reads(of_items, part)

    def targets_of_pairs(self, of_targets: Tensor, part: slice = ALL) -> Tensor:
        """One row per pair (here, per read) from one row per target."""
        return of_targets.index_select(0, self.read_target[part])

    def pairs_to_reads(self, of_pairs: Tensor) -> Tensor:
        """The rows as they are: every pair is a read."""
        return of_pairs


Gather = HardGather | StraightThroughGather


def gather(reads: Reads) -> Gather:
    """The gather that brings features to these reads."""
    return HardGather.of(reads.addresses) if reads.choice is None else StraightThroughGather.of(reads.choice)


def independent(
    q_a: AddressDistribution, samples: int, memory: Memory | None, generator: torch.Generator | None = None
) -> Reads:
    """a_k ~ q(a|x), K times."""
    addresses = q_a.sample(samples, generator)
    return Reads(addresses, q_a.log_probs.new_full(addresses.shape, -math.log(samples)))


def all_addresses(
    q_a: AddressDistribution, samples: int, memory: Memory, generator: torch.Generator | None = None
) -> Reads:
    """Every address in use, `samples` times: sums over a are exact, and only z is sampled."""
    batch = q_a.log_probs.shape[0]
    addresses = memory.addresses().repeat_interleave(samples).expand(batch, -1)
    return Reads(addresses, q_a.log_prob(addresses) - math.log(samples))


def stratified(
    q_a: AddressDistribution,
    samples: int,
    memory: Memory | None,
    generator: torch.Generator | None = None,
    allocation: AddressDistribution | None = None,
    outside: int = 1,
) -> Reads:
    """p(x|M) = Σ_{a in S} p(a) p(x|m_a) + Σ_{a not in S} p(a) p(x|m_a): exact in a in S, sampled outside.

    p(x|M) = Σ_{a in S} p(a) p(x|m_a) + Σ_{a not in S} p(a) p(x|m_a): exact over S, sampled outside.

    Address a gets n_a = ⌊(K − K₀) r(a)⌋ of the K reads, where r is the `allocation` (by default q(a|x)) and K₀ is
    `outside`. S is where n_a is at least 1, and each read there stands for q(a|x) / n_a. The remaining reads, K₀ or
    more, are drawn from q(a|x) outside S, and each stands for an equal share of its mass there. Whatever r is, the
    expectation of Σ_k mass_k w_k is p(x|M), so its logarithm bounds log p(x|M).
    """
    log_q = q_a.log_probs.detach()
    shares = log_q if allocation is None else allocation.log_probs.detach()
    counts = ((samples - outside) * shares.double().exp()).floor().long().masked_fill(log_q == -torch.inf, 0)
    others = log_q.masked_fill(counts > 0, -torch.inf)
    log_rest = others.logsumexp(-1, keepdim=True)
    nothing_left = log_rest == -torch.inf
    spare = samples - counts.sum(-1, keepdim=True)
    top = log_q.argmax(-1, keepdim=True)
    counts = counts.scatter_add(-1, top, spare * nothing_left)
    ends = counts.cumsum(-1)
    position = torch.arange(samples, device=log_q.device).expand(len(log_q), -1).contiguous()
    inside = torch.searchsorted(ends, position, right=True).clamp(max=log_q.shape[-1] - 1)
    elsewhere = AddressDistribution.of_scores(torch.where(nothing_left, log_q, others))
    drawn = elsewhere.sample(samples, generator)
    sampled = position >= ends[:, -1:]
    mass = log_q.gather(-1, inside) - counts.gather(-1, inside).clamp(min=1).log()
    rest = log_rest - spare.clamp(min=1).log()
    return Reads(torch.where(sampled, drawn, inside), torch.where(sampled, rest, mass))


def without_replacement(
    q_a: AddressDistribution, samples: int, memory: Memory, generator: torch.Generator | None = None
) -> Reads:
    """The K addresses with the largest log q(a|x) + Gumbel noise, which are distinct."""
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


DRAWS: dict[str, Callable[[AddressDistribution, int, Memory, torch.Generator | None], Reads]] = {
    "independent": independent,
    "all": all_addresses,
    "stratified": stratified,
    "without-replacement": without_replacement,
    "straight-through": straight_through,
}
SAMPLINGS = (*DRAWS, "adaptive")  # all names for how addresses are read


def draw(
    q_a: AddressDistribution, samples: int, memory: Memory, sampling: str, generator: torch.Generator | None
) -> Reads:
    """Reads from q(a|x), drawn as `sampling` says."""
    check_sampling(sampling)
    return DRAWS[sampling](q_a, samples, memory, generator)


def check_sampling(sampling: str) -> None:
    """Refuse an unknown way of sampling, listing the known ones."""
    if sampling not in SAMPLINGS:
        raise unknown_name("sampling", sampling, SAMPLINGS)


def adaptive(
    q_a: AddressDistribution,
    samples: int,
    memory: Memory | None,
    generator: torch.Generator | None,
    terms_at: Callable[[Reads], BoundTerms],
) -> BoundTerms:
    """log (K₁ p̂₁ + K₂ p̂₂) / K: p̂₁ from a pilot of K₁ = K/4 reads, p̂₂ from reads allocated by its findings.

    Both sum exactly over the addresses that get at least one read, and sample z within each (see `stratified`).
    The pilot allocates its reads by q(a|x); its weights estimate p(a|x), and the other K₂ reads are allocated by
    the mean of the two. p̂₁ is unbiased, and so is p̂₂ whatever the pilot finds: the logarithm of their mean is a
    lower bound of log p(x|M) in expectation, like that of eq. 7.
    """
    reads = stratified(q_a, samples // PILOT, memory, generator)
    pilot = terms_at(reads)
    rest = stratified(q_a, samples - samples // PILOT, memory, generator, allocation(q_a, reads, pilot))
    return pilot.join(terms_at(rest))


def allocation(q_a: AddressDistribution, reads: Reads, pilot: BoundTerms) -> AddressDistribution:
    """½ q(a|x) + ½ p̂(a|x), where p̂(a|x) is each address's share of the pilot's weights."""
    q = q_a.log_probs.exp()
    found = torch.zeros_like(q).scatter_add(-1, reads.addresses, pilot.weights)
    return AddressDistribution((0.5 * q + 0.5 * found).log())
