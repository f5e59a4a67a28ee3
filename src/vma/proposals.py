"""r(a|x): reads of a memory that is too large to be gone through, from what a search finds in it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.addressing import AddressDistribution, Prior
from vma.bounds import BoundTerms
from vma.errors import InputError
from vma.reads import PILOT, Reads, adaptive, check_sampling, independent, stratified

EPSILON = 0.05  # share of the reads that go to p(a), wherever the search has looked
NOWHERE = -1  # in place of a candidate that was not found
NEXT_TO_NOTHING = 1e-9  # of p(a): what lies outside of the candidates is not read then
ROUNDS = 32  # draws from p(a) that may hit candidates, before p(a) without these is worked out


@runtime_checkable
class SearchedMemory(Protocol):
    """M, of which only what a search finds is looked at; every method of a `VMA` that reads takes one."""

    def read(self, a: Int[Tensor, "*reads"]) -> Float[Tensor, "*reads_and_item"]:
        """m_a for every address in `a`."""

    def keys(self, a: Int[Tensor, "*reads"]) -> Float[Tensor, "*reads_and_key"]:
        """k_a for every address in `a`, as they are stored."""

    def prior(self) -> Prior:
        """p(a)."""

    def __len__(self) -> int:
        """One more than the largest address."""

    def search(self, queries: Float[Tensor, "batch matching"]) -> Int[Tensor, "batch candidates"]:
        """The addresses of large <k_a, q> of each query; `NOWHERE` where there are fewer."""

    @property
    def epsilon(self) -> float:
        """ε of the proposal."""

    @property
    def sharpness(self) -> float:
        """β of the proposal."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """r(a|x) = (1 − ε) softmax_C β S(m_a, x) + ε p(a), where C are the candidates that a search found for x.

    Whatever C and β, log 1/K Σ w with w = p(a) p(x,z|m_a) / (r(a|x) q(z|m_a,x)) is a lower bound of log p(x|M) in
    expectation. Where nothing is found, r is p.

    Attributes:
        addresses: C for each target, each address once; `NOWHERE` where fewer are found.
        scores: S(m_a, x) of each.
        p_a: p(a).
        epsilon: ε; with 0, what the search misses is never read, and the bound is that much lower.
        sharpness: β; q(a|x) of a model that learned with few items is too broad among many, and more than 1 helps.
    """

    addresses: Int[Tensor, "batch candidates"]
    scores: Float[Tensor, "batch candidates"]
    p_a: Prior
    epsilon: float = EPSILON
    sharpness: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon <= 1:
            raise InputError(
                f"epsilon is a share of the reads, so it must lie in [0, 1], not {self.epsilon}."
            )
        if not 0 < self.sharpness < math.inf:
            raise InputError(f"sharpness multiplies S, so it must be a number above 0, not {self.sharpness}.")

    @cached_property
    def found(self) -> Tensor:
        """Where there is a candidate."""
        return self.addresses != NOWHERE

    @cached_property
    def log_epsilon(self) -> Float[Tensor, "batch 1"]:
        """log ε of each target: log 1 where nothing was found."""
        share = self.scores.new_full((len(self.scores), 1), self.epsilon)
        return share.masked_fill(~self.found.any(1, keepdim=True), 1.0).log()

    @cached_property
    def log_p(self) -> Float[Tensor, "batch candidates"]:
        """log p(a) of the candidates."""
        log_p = self.p_a.log_prob(self.addresses.clamp(min=0)).to(self.scores)
        return log_p.masked_fill(~self.found, -torch.inf)

    @cached_property
    def log_share(self) -> Float[Tensor, "batch candidates"]:
        """log softmax_C β S."""
        nothing = ~self.found.any(1, keepdim=True)
        shares = (
            (self.sharpness * self.scores).masked_fill(~(self.found | nothing), -torch.inf).log_softmax(-1)
        )
        return shares.masked_fill(nothing, -torch.inf)

    @cached_property
    def log_r(self) -> Float[Tensor, "batch candidates"]:
        """log r(a|x) of the candidates."""
        searched = torch.log1p(-self.log_epsilon.exp()) + self.log_share
        return torch.logaddexp(searched, self.log_epsilon + self.log_p)

    @cached_property
    def log_outside(self) -> Float[Tensor, "batch"]:
        """log (1 − p(C)); −∞ where that is next to nothing."""
        rest = -torch.expm1(self.log_p.detach().logsumexp(1).clamp(max=0.0))
        return torch.where(rest < NEXT_TO_NOTHING, -torch.inf, rest.log())

    @cached_property
    def order(self) -> tuple[Tensor, Tensor]:
        """The candidates sorted, and where each stood."""
        return self.addresses.sort(1)

    def position(self, a: Int[Tensor, "batch samples"]) -> tuple[Tensor, Tensor]:
        """Where among the candidates each address stands, and whether it is there at all."""
        ordered, home = self.order
        place = torch.searchsorted(ordered, a.contiguous()).clamp(max=ordered.shape[1] - 1)
        return home.gather(1, place), ordered.gather(1, place) == a

    def log_prob(self, a: Int[Tensor, "batch samples"]) -> Float[Tensor, "batch samples"]:
        """log r(a|x); of an address that the search did not find, log ε p(a)."""
        elsewhere = self.log_epsilon + self.p_a.log_prob(a).to(self.scores)
        if self.addresses.shape[1] == 0:
            return elsewhere
        place, here = self.position(a)
        return torch.where(here, self.log_r.gather(1, place), elsewhere)

    def kl(self, other: Prior) -> Float[Tensor, "batch"]:
        """KL(r ‖ p) = Σ_{a in C} r(a) log r(a)/p(a) + ε (1 − p(C)) log ε, exactly, from the candidates alone."""
        if other is not self.p_a:
            raise InputError("The divergence of a proposal is known from its own p(a) alone.")
        ratio = (self.log_r - self.log_p).masked_fill(~self.found, 0.0)
        inside = (self.log_r.exp() * ratio).sum(1)
        return inside + self.mass_outside * finite(self.log_epsilon.squeeze(1))

    def entropy(self) -> Float[Tensor, "batch"]:
        """H(r) = −Σ_{a in C} r log r − ε (1 − p(C)) log ε + ε (H(p) + Σ_{a in C} p log p)."""
        inside = (self.log_r.exp() * finite(self.log_r)).sum(1)
        rest = self.p_a.entropy().to(self.scores) + (self.log_p.exp() * finite(self.log_p)).sum(1)
        log_epsilon = self.log_epsilon.squeeze(1)
        return -inside - self.mass_outside * finite(log_epsilon) + log_epsilon.exp() * rest

    @property
    def mass_outside(self) -> Float[Tensor, "batch"]:
        """ε (1 − p(C)): the mass of r on what was not found."""
        return (self.log_epsilon.squeeze(1) + self.log_outside).exp()

    def perplexity(self) -> Float[Tensor, "batch"]:
        """exp(H(r))."""
        return self.entropy().exp()

    def places(self) -> AddressDistribution:
        """r as a distribution over the candidates and one more place, which stands for everywhere else."""
        outside = self.log_epsilon + self.log_outside.unsqueeze(1)
        return AddressDistribution(torch.cat((self.log_r, outside), 1))

    @torch.no_grad()
    def at_places(self, reads: Reads, generator: torch.Generator | None = None) -> Reads:
        """Reads of `places` as reads of memory: elsewhere is an address drawn from p(a) outside of C."""
        outside = reads.addresses == self.addresses.shape[1]
        nowhere = self.addresses.new_full((len(self.addresses), 1), NOWHERE)
        addresses = torch.cat((self.addresses, nowhere), 1).gather(1, reads.addresses)
        for row in outside.any(1).nonzero().flatten().tolist():
            addresses[row, outside[row]] = self.elsewhere(row, int(outside[row].sum()), generator)
        return replace(reads, addresses=addresses)

    def sample(self, samples: int, generator: torch.Generator | None = None) -> Int[Tensor, "batch samples"]:
        """a_k ~ r(a|x), K times."""
        places = self.places().sample(samples, generator)
        mass = self.scores.new_full(places.shape, -math.log(samples))
        return self.at_places(Reads(places, mass), generator).addresses

    def elsewhere(self, row: int, samples: int, generator: torch.Generator | None) -> Int[Tensor, "samples"]:
        """a ~ p(a) outside of C of one target: what hits C is drawn again, and where all does, C is left out."""
        candidates, drawn = self.addresses[row], torch.empty(0, dtype=torch.int64)
        for _ in range(ROUNDS):
            more = self.p_a.sample(samples - len(drawn), generator)
            drawn = torch.cat((drawn, more[~torch.isin(more, candidates)]))
            if len(drawn) == samples:
                return drawn
        rest = self.p_a.without(candidates)
        return torch.cat((drawn, rest.sample(samples - len(drawn), generator)))


def finite(log_probs: Tensor) -> Tensor:
    """The same with 0 for −∞, where it is multiplied by a mass of 0."""
    return log_probs.masked_fill(log_probs == -torch.inf, 0.0)


SEARCHED = ("independent", "stratified", "adaptive")  # the samplings that need not go through all of memory


def draw_places(
    proposal: Proposal,
    samples: int,
    sampling: str,
    generator: torch.Generator | None,
    at: Callable[[Reads], BoundTerms],
) -> BoundTerms:
    """The terms `at` reads of memory that are drawn from r(a|x).

    `stratified` sums exactly over the best candidates and draws a quarter of the reads outside of these;
    `adaptive` sums exactly twice, the second time over what the first has found. What the search did not find is
    one place of the reads, and within it addresses are drawn from p(a).
    """
    check_sampling(sampling)
    if sampling not in SEARCHED:
        raise InputError(f"A memory that is searched is read {', '.join(SEARCHED)}, not {sampling}.")
    places = proposal.places()

    def in_memory(reads: Reads) -> BoundTerms:
        return at(proposal.at_places(reads, generator))

    if sampling == "adaptive":
        return adaptive(places, samples, None, generator, in_memory)
    if sampling == "stratified":
        return in_memory(stratified(places, samples, None, generator, outside=max(1, samples // PILOT)))
    return in_memory(independent(places, samples, None, generator))
