"""A tighter bound of log p(x|M) at equal cost: the reads go where p(a|x) is, not where q(a|x) guesses."""

import torch
from jaxtyping import Float
from torch import Tensor

from vma.addressing import AddressDistribution
from vma.bounds import BoundTerms
from vma.memory import Memory
from vma.model import VMA
from vma.reads import Reads, stratified

PILOT = 4  # one read in so many is spent on finding out where p(a|x) is
FEWEST = 2 * PILOT  # reads below which that is not worth it


@torch.no_grad()
def adaptive_terms(
    model: VMA,
    x: Float[Tensor, "batch *image"],
    memory: Memory | None,
    samples: int,
    *,
    chunk: int = 0,
    generator: torch.Generator | None = None,
) -> BoundTerms:
    """log (K₁ p̂₁ + K₂ p̂₂) / K: p̂₁ from a pilot of K₁ = K/4 reads, p̂₂ from reads shared out by what it found.

    Both sum exactly over the addresses that get a read or more and sample z within each (see `stratified`).
    The pilot's reads are shared out by q(a|x); its weights estimate p(a|x), and the K₂ others are shared out by
    the mean of the two. p̂₁ is unbiased, and so is p̂₂ whatever the pilot found: the logarithm of their
    mean is a lower bound of log p(x|M) in expectation, as that of eq. 7 is.
    """
    x, memory = model.targets(x), model.memory(memory)
    keys = model.addressing.keys(memory)
    p_a, q_a = model.addressing.prior(memory, keys), model.addressing.posterior(x, memory, keys)

    def stage(count: int, allocation: AddressDistribution | None) -> tuple[Reads, BoundTerms]:
        reads = stratified(q_a, count, memory, generator, allocation)
        shape = (*reads.addresses.shape, model.config.latent)
        noise = torch.randn(shape, dtype=x.dtype, device=x.device, generator=generator)
        return reads, model.terms_at(x, memory, p_a, q_a, reads, noise, chunk=chunk)

    reads, pilot = stage(samples // PILOT, None)
    return pilot.join(stage(samples - samples // PILOT, allocation(q_a, reads, pilot))[1])


def allocation(q_a: AddressDistribution, reads: Reads, pilot: BoundTerms) -> AddressDistribution:
    """½ q(a|x) + ½ p̂(a|x), where p̂(a|x) is each address's share of the pilot's weights."""
    q = q_a.log_probs.exp()
    found = torch.zeros_like(q).scatter_add(-1, reads.addresses, pilot.weights)
    return AddressDistribution((0.5 * q + 0.5 * found).log())
