"""−log p(x|M) by the K-sample bound (eq. 7) for any K, and what it is made of."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from vma.bounds import BoundTerms, decomposition, effective_sample_size, multi_sample_bound
from vma.checks import check_samples
from vma.chunks import slices
from vma.errors import unknown_name
from vma.model import AnyMemory, GenerativeModel

CHUNK = 256  # rows that a network sees at a time
READS = 200_000  # reads whose z are held at a time

SAMPLINGS = ("independent", "adaptive")  # those of `vma.reads.SAMPLINGS` that give a bound of any K
Measures = dict[str, list[float]]


@torch.no_grad()
def bounds(
    model: GenerativeModel,
    x: Float[Tensor, "batch *image"],
    memory: AnyMemory = None,
    samples: int = 1000,
    *,
    sampling: str = "independent",
    generator: torch.Generator | None = None,
) -> Float[Tensor, "batch"]:
    """L = log 1/K Σ_k w_k for each target, with K = `samples` of any size.

    Keys and features of items are computed once per item read, the encoder once per pair of target and item;
    only the decoder runs once per read.

    Args:
        model: Any model.
        x: Targets.
        memory: M.
        samples: K.
        sampling: `independent` (eq. 7), or `adaptive`, a tighter bound at the same cost.
        generator: Source of randomness.
    """
    found = [
        multi_sample_bound(terms(model, x[part], memory, samples, sampling, generator))
        for part in parts(len(x), samples)
    ]
    return torch.cat(found)


def parts(targets: int, samples: int) -> Iterator[slice]:
    """The targets in slices of at most `READS` reads, or of one target."""
    check_samples(samples, 1, "A bound")
    return slices(targets, max(1, READS // samples))


def terms(
    model: GenerativeModel,
    x: Float[Tensor, "batch *image"],
    memory: AnyMemory,
    samples: int,
    sampling: str,
    generator: torch.Generator | None,
) -> BoundTerms:
    """The terms of the bound; a model without addresses has only one way of sampling."""
    if sampling not in SAMPLINGS:
        raise unknown_name("sampling", sampling, SAMPLINGS)
    chosen = sampling if model.has_addresses else "independent"
    return model.terms(x, memory, samples, sampling=chosen, chunk=CHUNK, generator=generator)


@torch.no_grad()
def measures(
    model: GenerativeModel,
    x: Float[Tensor, "batch *image"],
    memory: AnyMemory = None,
    samples: int = 1000,
    *,
    sampling: str = "independent",
    generator: torch.Generator | None = None,
) -> Measures:
    """For each target: −L, its decomposition into reconstruction, KL_a and KL_z, H(q(a|x)), effective samples.

    For arguments see `bounds`.
    """
    found: Measures = {}
    for part in parts(len(x), samples):
        for name, values in of_terms(terms(model, x[part], memory, samples, sampling, generator)).items():
            found.setdefault(name, []).extend(values.double().tolist())
    return found


def of_terms(found: BoundTerms) -> dict[str, Float[Tensor, "batch"]]:
    """The measures of each target."""
    parts, bound = decomposition(found), multi_sample_bound(found)
    return {
        "nll": -bound,
        "reconstruction": parts.reconstruction,
        "kl_a": parts.kl_a,
        "kl_z": parts.kl_z,
        "entropy_q_a": torch.zeros_like(bound) if found.q_a is None else found.q_a.entropy(),
        "effective_samples": effective_sample_size(found),
    }
