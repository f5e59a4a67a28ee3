"""log p(x|M) of an image, and whether it is novel: unlike everything in memory."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vma.bounds import multi_sample_bound
from vma.checks import check_samples
from vma.use.keyed import KeyedMemory
from vma.use.labels import Labels

FEWEST = 4  # items that a limit can be made of
ENOUGH = 20  # items from which on a quantile is better than a mean and a deviation
MOST = 50  # items that are scored for it: more take longer and tell little
UNUSUAL = 0.05  # share of the memory's own items that would be called novel


@dataclass(frozen=True)
class Norm:
    """Which surprise is usual in a memory: that of its own items, each given all the others.

    Attributes:
        typical: The median surprise; None where there is none.
        limit: An image of more surprise is novel; None where there is none.
        reason: Why there is none, else an empty string.
    """

    typical: float | None
    limit: float | None
    reason: str = ""


@dataclass(frozen=True)
class Score:
    """How well a memory explains an image.

    Attributes:
        log_p: The K-sample bound of log p(x|M), in nats.
        bits_per_pixel: −log_p / (ln 2 · pixels).
        surprise: log p(x|M) / log p(x|{x}): 1 for an image that memory explains as well as if it held it.
        novel: Whether log_p is below the threshold; None where there is none.
        threshold: The log_p below which this image is novel.
        typical: The log_p that would be usual for this image.
        reason: Why `novel` is None, else an empty string.
    """

    log_p: float
    bits_per_pixel: float
    surprise: float
    novel: bool | None
    threshold: float | None
    typical: float | None
    reason: str = ""


@torch.no_grad()
def log_p(keyed: KeyedMemory, x: Float[Tensor, "height width"], samples: int, seed: int | None) -> float:
    """L = log 1/K Σ_k w_k (eq. 7) of one image: it does not depend on which others are asked about."""
    check_samples(samples, 1, "A score")
    return float(multi_sample_bound(keyed.terms(x[None], samples, keyed.generator(seed)))[0])


def own_log_p(keyed: KeyedMemory, x: Float[Tensor, "height width"], samples: int, seed: int | None) -> float:
    """log p(x|{x}): what an image costs where memory holds nothing but itself. A complex image costs more."""
    return log_p(KeyedMemory.of(keyed.model, x[None]), x, samples, seed)


def score(
    keyed: KeyedMemory, x: Float[Tensor, "height width"], norm: Norm, samples: int, seed: int | None
) -> Score:
    """An image's score, against what is usual for an image that costs as much by itself."""
    value, own = log_p(keyed, x, samples, seed), own_log_p(keyed, x, samples, seed)
    limit, typical = (None if ratio is None else ratio * own for ratio in (norm.limit, norm.typical))
    return Score(
        log_p=value,
        bits_per_pixel=-value / (math.log(2) * x.numel()),
        surprise=value / own,
        novel=None if limit is None else value < limit,
        threshold=limit,
        typical=typical,
        reason=norm.reason,
    )


def usual_surprise(keyed: KeyedMemory, labels: Labels, samples: int, seed: int | None) -> Norm:
    """What is usual in this memory, by the surprise of its items, each given all the others."""
    chosen = comparable(labels)
    if len(chosen) < FEWEST:
        what = "items that share their label with another" if any(labels) else "items"
        return Norm(None, None, f"novelty needs {FEWEST} or more {what}; this memory has {len(chosen)}")
    spread = np.linspace(0, len(chosen) - 1, min(MOST, len(chosen))).round().astype(int)
    surprises = np.array([surprise_of(keyed, chosen[i], samples, seed) for i in spread])
    return Norm(float(np.median(surprises)), limit_of(surprises))


def comparable(labels: Labels) -> list[int]:
    """The items of which memory holds another example: those that share their label, or all where none has one."""
    if not any(labels):
        return list(range(len(labels)))
    return [i for i, label in enumerate(labels) if label is not None and labels.count(label) > 1]


def surprise_of(keyed: KeyedMemory, item: int, samples: int, seed: int | None) -> float:
    """log p(m_i | M without m_i) / log p(m_i | {m_i})."""
    others = torch.arange(len(keyed), device=keyed.keys.device) != item
    x = keyed.memory.items[item]
    alone = keyed.keep(torch.tensor([item], device=keyed.keys.device))
    return log_p(keyed.only(others), x, samples, seed) / log_p(alone, x, samples, seed)


def limit_of(surprises: Float[np.ndarray, "items"]) -> float:
    """The 95 % quantile of many, or the mean and two standard deviations of a few."""
    if len(surprises) >= ENOUGH:
        return float(np.quantile(surprises, 1 - UNUSUAL))
    return float(surprises.mean() + 2 * surprises.std(ddof=1))
