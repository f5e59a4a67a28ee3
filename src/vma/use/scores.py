"""log p(x|M) of an image, and whether it is novel: of a class that memory does not hold."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from vma.bounds import multi_sample_bound
from vma.checks import check_samples
from vma.use.keyed import KeyedMemory
from vma.use.labels import Labels
from vma.use.novelty import FEWEST, UNUSUAL, Measures, Norm, norm_of

MOST = 50  # items that a norm is made of: more take longer and tell little


@dataclass(frozen=True)
class Score:
    """How well a memory explains an image.

    Attributes:
        log_p: The K-sample bound of log p(x|M), in nats.
        bits_per_pixel: −log_p / (ln 2 · pixels).
        surprise: log p(x|M) / log p(x|{x}): 1 for an image that memory explains as well as if it held it.
        novel: Whether p_value is below 5 %; None where that cannot be told.
        threshold: The log_p below which this image is novel, its angle being what it is.
        typical: The log_p that would be usual for this image.
        reason: Why `novel` is None, else an empty string.
        angle: Between the image and the item nearest to it in the matching space, in radians.
        p_value: The chance that an image of a class in memory is as unusual as this one.
    """

    log_p: float
    bits_per_pixel: float
    surprise: float
    novel: bool | None
    threshold: float | None
    typical: float | None
    reason: str = ""
    angle: float = math.nan
    p_value: float | None = None


# What is measured


@torch.no_grad()
def log_p(keyed: KeyedMemory, x: Float[Tensor, "height width"], samples: int, seed: int | None) -> float:
    """L = log 1/K Σ_k w_k (eq. 7) of one image: it does not depend on which others are asked about."""
    check_samples(samples, 1, "A score")
    return float(multi_sample_bound(keyed.terms(x[None], samples, keyed.generator(seed)))[0])


def own_log_p(keyed: KeyedMemory, x: Float[Tensor, "height width"], samples: int, seed: int | None) -> float:
    """log p(x|{x}): what an image costs where memory holds nothing but itself. A complex image costs more."""
    return log_p(KeyedMemory.of(keyed.model, x[None]), x, samples, seed)


@torch.no_grad()
def nearest_angle(keyed: KeyedMemory, x: Float[Tensor, "height width"]) -> float:
    """θ = min_a arccos <k_a, e^q(x)> / (‖k_a‖ ‖e^q(x)‖): how far the nearest item is in the matching space."""
    addressing = keyed.model.addressing
    query = addressing.key if addressing.query is None else addressing.query
    cosines = normalize(keyed.keys.double(), dim=-1) @ normalize(query(x[None]).double(), dim=-1)[0]
    return float(cosines[keyed.memory.in_use()].max().clamp(-1, 1).arccos())


# What is usual


def usual(keyed: KeyedMemory, labels: Labels, samples: int, seed: int | None) -> Norm:
    """What is usual in this memory, by its items, each given all the others; and given all of other classes."""
    chosen = comparable(labels)
    if len(chosen) < FEWEST:
        what = "items that share their label with another" if any(labels) else "items"
        return Norm(None, None, f"novelty needs {FEWEST} or more {what}; this memory has {len(chosen)}")
    spread = np.linspace(0, len(chosen) - 1, min(MOST, len(chosen))).round().astype(int)
    items = [chosen[i] for i in spread]
    own = [own_log_p(keyed, keyed.memory.items[i], samples, seed) for i in items]
    others = [[j != i for j in range(len(labels))] for i in items]
    known = measures(keyed, items, own, others, samples, seed)
    if len(set(labels)) == 1:  # without another class, no item can be looked for in vain
        return norm_of(known, known[:0])
    elsewhere = [[label != labels[i] for label in labels] for i in items]
    return norm_of(known, measures(keyed, items, own, elsewhere, samples, seed))


def comparable(labels: Labels) -> list[int]:
    """The items of which memory holds another example: those that share their label, or all where none has one."""
    if not any(labels):
        return list(range(len(labels)))
    return [i for i, label in enumerate(labels) if label is not None and labels.count(label) > 1]


def measures(
    keyed: KeyedMemory,
    items: list[int],
    own: list[float],
    given: list[list[bool]],
    samples: int,
    seed: int | None,
) -> Measures:
    """log p(m_i|M_i) / log p(m_i|{m_i}), and the angle, of each of `items`; M_i are the items in its `given`."""
    rows = []
    for item, alone, mask in zip(items, own, given, strict=True):
        x, rest = keyed.memory.items[item], keyed.only(torch.tensor(mask, device=keyed.keys.device))
        rows.append((log_p(rest, x, samples, seed) / alone, nearest_angle(rest, x)))
    return np.array(rows)


# An image


def score(
    keyed: KeyedMemory, x: Float[Tensor, "height width"], norm: Norm, samples: int, seed: int | None
) -> Score:
    """An image's score, against what is usual for an image that costs as much by itself."""
    return judge(keyed, x, log_p(keyed, x, samples, seed), norm, samples, seed)


def judge(
    keyed: KeyedMemory,
    x: Float[Tensor, "height width"],
    value: float,
    norm: Norm,
    samples: int,
    seed: int | None,
) -> Score:
    """The score of an image whose log p(x|M) is known."""
    own, angle, rule = own_log_p(keyed, x, samples, seed), nearest_angle(keyed, x), norm.rule
    p_value = None if rule is None else rule.p_value(value / own, angle)
    return Score(
        log_p=value,
        bits_per_pixel=-value / (math.log(2) * x.numel()),
        surprise=value / own,
        novel=None if p_value is None else p_value < UNUSUAL,
        threshold=None if rule is None else rule.largest_surprise(angle) * own,
        typical=None if norm.typical is None else norm.typical * own,
        reason=norm.reason,
        angle=angle,
        p_value=p_value,
    )
