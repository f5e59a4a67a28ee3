"""−log p(x|M) by the K-sample bound (eq. 7) for any K, and its decomposition."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from vma.bounds import BoundTerms, decomposition, effective_sample_size, multi_sample_bound
from vma.checks import check_samples
from vma.chunks import slices
from vma.errors import unknown_name
from vma.evaluation.json_values import plain
from vma.evaluation.statistics import Mean, mean_of
from vma.generative_model import AnyMemory, GenerativeModel

CHUNK = 256  # rows that a network processes at a time
READS = 200_000  # reads whose z are held at a time

SAMPLINGS = ("independent", "adaptive")  # those of `vma.reads.SAMPLINGS` that give a bound for any K


@dataclass(frozen=True)
class TargetMeasures:
    """What is measured of the targets: lists with one value per target.

    Attributes:
        nll: −L, an upper bound of −log p(x|M).
        reconstruction: E_q[log p(x|m_a,z)].
        kl_a: KL(q(a|x) ‖ p(a)).
        kl_z: E_q(a|x)[KL(q(z|m_a,x) ‖ p(z|m_a))].
        entropy_q_a: H(q(a|x)); 0 without addresses.
        effective_samples: (Σ w)² / Σ w² of the K weights.
    """

    nll: list[float]
    reconstruction: list[float]
    kl_a: list[float]
    kl_z: list[float]
    entropy_q_a: list[float]
    effective_samples: list[float]


@dataclass(frozen=True, kw_only=True)
class AverageMeasures:
    """The mean of each of `TargetMeasures` over all targets, with its standard error."""

    nll: Mean
    reconstruction: Mean
    kl_a: Mean
    kl_z: Mean
    entropy_q_a: Mean
    effective_samples: Mean


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

    >>> model = vma.build_model(vma.ModelConfig(maps=8))
    >>> memory = vma.Memory.of(torch.zeros(5, 26, 26))
    >>> vma.evaluation.bounds(model, torch.zeros(2, 26, 26), memory, samples=100).shape
    torch.Size([2])

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
    """The targets in slices with at most `READS` reads, or of a single target."""
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
) -> TargetMeasures:
    """For each target: −L, its parts (reconstruction, KL_a and KL_z), H(q(a|x)), and the effective samples.

    The arguments are those of `bounds`.

    >>> model = vma.build_model(vma.ModelConfig(maps=8))
    >>> memory = vma.Memory.of(torch.zeros(5, 26, 26))
    >>> found = vma.evaluation.measures(model, torch.zeros(2, 26, 26), memory, samples=100)
    >>> len(found.nll), len(found.kl_a)
    (2, 2)
    """
    return pooled(
        [
            of_terms(terms(model, x[part], memory, samples, sampling, generator))
            for part in parts(len(x), samples)
        ]
    )


def of_terms(found: BoundTerms) -> TargetMeasures:
    """The measures of each target."""
    parts, bound = decomposition(found), multi_sample_bound(found)
    entropy = torch.zeros_like(bound) if found.q_a is None else found.q_a.entropy()
    values = (-bound, parts.reconstruction, parts.kl_a, parts.kl_z, entropy, effective_sample_size(found))
    return TargetMeasures(*(each.double().tolist() for each in values))


SomeMeasures = TypeVar("SomeMeasures", bound=TargetMeasures)


def pooled(several: Sequence[SomeMeasures]) -> SomeMeasures:
    """The measures of all targets in one list each."""
    lists = [plain(each) for each in several]
    return type(several[0])(**{name: [value for each in lists for value in each[name]] for name in lists[0]})


def averages(measures: TargetMeasures, groups: Sequence[Hashable]) -> dict[str, Any]:
    """The mean of each measure with its standard error, by name; targets of one group may depend on each other."""
    return {name: mean_of(values, groups) for name, values in plain(measures).items()}


def groups_of(rows: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Groups of dependent targets: those of one class in one episode, whose likelihoods are alike."""
    return [(number, group) for number, groups in enumerate(rows) for group in groups]
