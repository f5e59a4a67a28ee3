"""p(a) and q(a|x), equation 4: where to look in memory."""

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from vma.chunks import in_chunks
from vma.errors import InputError
from vma.memory import KeyedMemory, Memory
from vma.similarity import Similarity

CHUNK = 128  # items that are embedded at a time
BLOCK = 1024  # addresses in a block: a few reads from a large memory first choose a block


@runtime_checkable
class Distribution(Protocol):
    """Probabilities of addresses, worked out only for the addresses that are asked for."""

    def log_prob(self, a: Int[Tensor, "*reads"]) -> Float[Tensor, "*reads"]:
        """log P(a)."""

    def sample(self, samples: int, generator: torch.Generator | None = None) -> Int[Tensor, "*reads"]:
        """`samples` independent addresses."""

    def entropy(self) -> Float[Tensor, "*batch"]:
        """H, in nats."""


@runtime_checkable
class Prior(Distribution, Protocol):
    """p(a)."""

    def without(self, addresses: Int[Tensor, "gone"]) -> "Prior":
        """p(a) of all other addresses."""


@runtime_checkable
class Posterior(Distribution, Protocol):
    """q(a|x), or the distribution that reads are drawn from instead."""

    def kl(self, other: Any) -> Float[Tensor, "*batch"]:
        """KL(self ‖ p(a)) for every target."""


@dataclass(frozen=True)
class AddressDistribution:
    """A categorical distribution over addresses, p(a) or q(a|x), stored as log-probabilities.

    >>> p_a = vma.AddressDistribution.of_scores(torch.zeros(4))
    >>> p_a.perplexity(), p_a.sample(2).shape
    (tensor(4.), torch.Size([2]))

    Attributes:
        log_probs: Log-probability of every address; -inf at masked items.
    """

    log_probs: Float[Tensor, "*batch memory"]

    @staticmethod
    def of_scores(
        scores: Float[Tensor, "*batch memory"], mask: Tensor | None = None
    ) -> "AddressDistribution":
        """softmax(scores) over the addresses in use."""
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return AddressDistribution(scores.log_softmax(-1))

    def log_prob(self, a: Int[Tensor, "*batch samples"]) -> Float[Tensor, "*batch samples"]:
        """log P(a); a single distribution also serves a whole batch of addresses."""
        if self.log_probs.ndim == 1:
            return self.log_probs[a]
        return self.log_probs.gather(-1, a)

    def expected(self, values: Float[Tensor, "*#batch memory"]) -> Float[Tensor, "*batch"]:
        """Σ_a P(a) values_a; an address with P(a) = 0 contributes 0, whatever its value."""
        impossible = self.log_probs == -torch.inf
        return (self.log_probs.exp() * values.masked_fill(impossible, 0.0)).sum(-1)

    def kl(self, other: "AddressDistribution") -> Float[Tensor, "*batch"]:
        """KL(self ‖ other) = Σ_a P(a) (log P(a) − log P'(a)), exactly."""
        return self.expected(self.log_probs - other.log_probs)

    def entropy(self) -> Float[Tensor, "*batch"]:
        """H = −Σ_a P(a) log P(a), in nats."""
        return -self.expected(self.log_probs)

    def perplexity(self) -> Float[Tensor, "*batch"]:
        """exp(H): how many addresses are in use, on average."""
        return self.entropy().exp()

    @torch.no_grad()
    def sample(self, samples: int, generator: torch.Generator | None = None) -> Int[Tensor, "*batch samples"]:
        """a_k = min {a : Σ_{b ≤ a} P(b) > u_k}, with u_k uniform: K independent addresses.

        In a large memory, a block of addresses is drawn first, then one address in it, both in this way. Sums are
        in float64, since torch.multinomial is inaccurate for very many categories.
        """
        if self.log_probs.shape[-1] < 2 * BLOCK * samples:  # drawing blocks first would save little
            return by_mass(self.log_probs.double().exp(), samples, generator)
        mass = in_blocks(self.log_probs)
        block = by_mass(mass.sum(-1, dtype=torch.float64), samples, generator)
        chosen = mass.gather(-2, block.unsqueeze(-1).expand(*block.shape, BLOCK))
        within = by_mass(chosen.double(), 1, generator).squeeze(-1)
        return (block * BLOCK + within).clamp(max=self.log_probs.shape[-1] - 1)

    def without(self, addresses: Int[Tensor, "gone"]) -> "AddressDistribution":
        """The distribution over all other addresses."""
        return AddressDistribution.of_scores(self.log_probs.index_fill(-1, addresses, -torch.inf))

    @torch.no_grad()
    def gumbel_noise(self, generator: torch.Generator | None = None) -> Float[Tensor, "*batch memory"]:
        """g_a, standard Gumbel: the arg-max of log P + g is a sample, and the k largest are k distinct ones."""
        noise = torch.empty(self.log_probs.shape, dtype=torch.float64, device=self.log_probs.device)
        return -noise.exponential_(generator=generator).log()


def in_blocks(log_probs: Float[Tensor, "*batch memory"]) -> Float[Tensor, "*batch blocks block"]:
    """P(a) in blocks of addresses, the last one filled up with zeros."""
    *batch, size = log_probs.shape
    mass = log_probs.new_zeros(*batch, math.ceil(size / BLOCK) * BLOCK)
    torch.exp(log_probs, out=mass[..., :size])
    return mass.unflatten(-1, (-1, BLOCK))


def by_mass(
    mass: Float[Tensor, "*batch choices"], samples: int, generator: torch.Generator | None
) -> Int[Tensor, "*batch samples"]:
    """`samples` independent choices, each in proportion to its mass, by the inverse distribution function."""
    cumulative = mass.cumsum(-1)
    total = cumulative[..., -1:]
    shape = (*total.shape[:-1], samples)
    uniform = torch.rand(shape, dtype=mass.dtype, device=mass.device, generator=generator)
    # Strictly below the total, so that rounding up never selects a final choice without mass.
    point = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    # NaN masses still return a choice: the bound then becomes NaN, which training reports.
    return torch.searchsorted(cumulative, point, right=True).clamp(max=cumulative.shape[-1] - 1)


def uniform(memory: Memory) -> AddressDistribution:
    """p(a) = 1/|M| over the items in use."""
    return AddressDistribution.of_scores(memory.items.new_zeros(len(memory)), memory.mask)


def class_mass(
    q: Float[Tensor, "batch memory"], labels: Int[Tensor, "memory"], classes: int | None = None
) -> Float[Tensor, "batch classes"]:
    """Σ_a q(a|x) [label of m_a is y] for every class y; without `classes`, for each that occurs."""
    count = int(labels.max()) + 1 if classes is None else classes
    return q.new_zeros(len(q), count).index_add(1, labels, q)


class Addressing(nn.Module):
    """p(a) ∝ exp S(m_a, e^p) and q(a|x) ∝ exp S(m_a, e^q(x)), with keys e_a = h(m_a) shared by both.

    Args:
        key: The network h from memory items to the matching space.
        query: The network h^q from targets to the matching space; None ties it to `key`.
        similarity: S.
        matching: Size of the matching space.
        prior: `learned` (a query e^p) or `flat` (p(a) = 1/|M|).
    """

    def __init__(
        self, key: nn.Module, query: nn.Module | None, similarity: Similarity, matching: int, prior: str
    ) -> None:
        super().__init__()
        if prior not in ("learned", "flat"):
            raise InputError(f"Unknown prior {prior!r}: choose one of learned, flat.")
        self.key = key
        self.query = query
        self.similarity = similarity
        # Zero at first: the learned prior starts as the flat one.
        self.prior_query = nn.Parameter(torch.zeros(matching)) if prior == "learned" else None

    def keyed(self, memory: Memory) -> KeyedMemory:
        """M with k_a of every item, computed once per memory, however many targets there are."""
        return KeyedMemory(memory, self.similarity.keys(self.embedded(memory)))

    def embedded(self, memory: Memory) -> Float[Tensor, "memory matching"]:
        """e_a = h(m_a) for all of M.

        Without gradients, a large memory is embedded in pieces: its feature maps are never held all at once.
        """
        size = 0 if torch.is_grad_enabled() else CHUNK
        return in_chunks(lambda part: self.key(memory.items[part]), len(memory), size)

    def queries(self, x: Float[Tensor, "batch *image"]) -> Float[Tensor, "batch matching"]:
        """e^q = h^q(x) of every target."""
        return self.key(x) if self.query is None else self.query(x)

    def prior(self, keyed: KeyedMemory) -> AddressDistribution:
        """p(a)."""
        if self.prior_query is None:
            return uniform(keyed.memory)
        scores = self.similarity.scores(keyed.keys, self.prior_query)
        return AddressDistribution.of_scores(scores, keyed.memory.mask)

    def posterior(self, x: Float[Tensor, "batch *image"], keyed: KeyedMemory) -> AddressDistribution:
        """q(a|x) for every target."""
        return self.matched(self.queries(x), keyed)

    def matched(self, queries: Float[Tensor, "batch matching"], keyed: KeyedMemory) -> AddressDistribution:
        """q(a|x) of targets whose query embedding e^q is known."""
        return AddressDistribution.of_scores(self.similarity.scores(keyed.keys, queries), keyed.memory.mask)
