"""β of r(a|x), fitted to a memory on disk: some of its items are targets, each given all the others."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import brentq
from torch import Tensor

from vma.errors import InputError
from vma.large.searched import SearchedItems
from vma.model import VMA
from vma.proposals import Proposal
from vma.reads import Reads

ITEMS, SAMPLES = 32, 2  # targets, and draws of z at each of their candidates
FEWEST = 8  # targets, and items of a memory
RANGE = (0.1, 20.0)  # of β


@dataclass(frozen=True)
class Candidates:
    """What a search found for one target.

    Attributes:
        scores: S(m_a, x).
        log_joint: log p(a) p(x|m_a), estimated.
    """

    scores: Float[Tensor, "found"]
    log_joint: Float[Tensor, "found"]

    def slope(self, sharpness: float) -> float:
        """∂/∂β KL(p(a|x) ‖ softmax_C β S) = Σ_a (softmax_C β S − p(a|x)) S, which grows with β."""
        share = (sharpness * self.scores).softmax(0) - self.log_joint.softmax(0)
        return float((share * self.scores).sum())


def fitted(several: list[Candidates]) -> float:
    """arg min_β Σ_x KL(p(a|x) ‖ softmax_C β S): the sum is convex in β, so that it has one minimum."""

    def slope(sharpness: float) -> float:
        return sum(each.slope(sharpness) for each in several)

    low, high = RANGE
    if slope(low) >= 0:
        return low
    return high if slope(high) <= 0 else float(brentq(slope, low, high, xtol=1e-4))


@torch.no_grad()
def sharpness_of(model: VMA, memory: SearchedItems, items: int = ITEMS, seed: int | None = 0) -> float:
    """β for this model and this memory, from so many of its items, each given all the others."""
    alive = memory.snapshot.alive()
    if len(alive) < FEWEST or items < FEWEST:
        raise InputError(
            f"A sharpness is fitted to {FEWEST} or more items; this memory has {len(alive)}, and {items} were "
            "asked for."
        )
    source = None if seed is None else torch.Generator().manual_seed(seed)
    chosen = alive[np.linspace(0, len(alive) - 1, min(items, len(alive))).astype(np.int64)]
    plain = replace(memory, sharpness=1.0)
    return fitted([found_for(model, plain, address, source) for address in chosen])


def found_for(
    model: VMA, memory: SearchedItems, address: np.int64, source: torch.Generator | None
) -> Candidates:
    """The candidates for an item among all others, with log 1/S Σ_s p(a) p(x,z_s|m_a) / q(z_s|m_a,x) of each."""
    others = memory.without(np.array([address]))
    x = memory.read(torch.tensor([address])).to(next(model.parameters()))
    proposal: Proposal = model.proposal(x, others)
    there = proposal.found[0]
    a = proposal.addresses[:, there].repeat_interleave(SAMPLES, dim=1)
    reads = Reads(a, torch.zeros(a.shape))
    noise = torch.randn((*a.shape, model.latent), generator=source)
    terms = model.terms_at(x, others, proposal.p_a, proposal, reads, noise)
    log_joint = (terms.log_w + terms.log_q_a)[0].double().unflatten(0, (-1, SAMPLES)).logsumexp(1)
    return Candidates(proposal.scores[0, there].double(), log_joint)
