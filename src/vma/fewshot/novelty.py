"""Whether an image is of a class that is not in memory, judged by what is usual for the classes that are."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import stdtr, stdtrit

from vma.memory import KeyedMemory

FEWEST = 4  # items that a norm needs at least
UNUSUAL = 0.05  # share of known images that are called novel
LEAST_WEIGHT = 0.1  # of a measure that does not tell new from known in this memory
LEAST_SPREAD = 1e-6  # used where items are copies of each other

Table = Float[np.ndarray, "_ measures"]  # one row per item: all three measures, or angle and odds


class Measures(NamedTuple):
    """Measures that tell new images from known ones; larger values mean newer.

    Attributes:
        surprise: log p(x|M) / log p(x|{x}).
        angle: Angle between the image and the item nearest to it in the matching space, in radians.
        odds: log q(a is a turned copy|x) / q(a is an item|x), if memory held both its items and turned or mirrored
            copies of them: strokes of the same hands, but characters that do not exist.
    """

    surprise: float
    angle: float
    odds: float


@dataclass(frozen=True)
class Rule:
    """T = Σ_j β_j measure_j − β₀, which follows Student's t with ν degrees of freedom for known images.

    Attributes:
        slopes: β.
        offset: β₀.
        freedom: ν.
    """

    slopes: Measures
    offset: float
    freedom: float

    def statistic(self, measures: Measures) -> float:
        """T."""
        return sum(slope * value for slope, value in zip(self.slopes, measures, strict=True)) - self.offset

    def p_value(self, measures: Measures) -> float:
        """P(t_ν > T): the probability that a known image is at least as unusual."""
        return t_tail(self.statistic(measures), self.freedom)

    def largest_surprise(self, measures: Measures) -> float:
        """The surprise above which this image would be novel, given its other measures."""
        missing = t_limit(UNUSUAL, self.freedom) - self.statistic(measures)
        return measures.surprise + missing / self.slopes.surprise


@dataclass(frozen=True)
class Norm:
    """What is usual in a memory, measured on its own items, each given all the others.

    >>> norm = vma.load("omniglot-crisp").remember("my-symbols").norm()
    >>> isinstance(norm, vma.fewshot.Norm), norm.typical > 0
    (True, True)

    Attributes:
        typical: Their median surprise; None if novelty cannot be told.
        rule: The rule that decides what is novel; None if that cannot be told.
        reason: Why it cannot be told; empty if it can.
        turned: Turned copies of the items.
    """

    typical: float | None
    rule: Rule | None
    reason: str = ""
    turned: KeyedMemory | None = None


def rule_of(known: Table, new: Table) -> Rule:
    """The rule, from measures of items given all others (`known`) and given only other classes (`new`, if any).

    All measures are standardised on the known items, weighted by how well each separates the new ones, and added;
    the sum is standardised again. The uncertainty of its mean widens it by √(1 + 1/n). Two items that are nearest
    to each other carry nearly the same information, so ν = (n − 1) / 2, half that of n independent items. If the
    surprise was not measured, its slope is 0.
    """
    count, spread, shares = (
        len(known),
        np.maximum(known.std(axis=0, ddof=1), LEAST_SPREAD),
        weights(known, new),
    )
    slopes = shares / shares.sum() / spread
    slopes /= max(float((known @ slopes).std(ddof=1)), LEAST_SPREAD) * math.sqrt(1 + 1 / count)
    missing = [0.0] * (len(Measures._fields) - len(slopes))
    return Rule(Measures(*missing, *slopes.tolist()), float((known @ slopes).mean()), (count - 1) / 2)


def weights(known: Table, new: Table) -> Float[np.ndarray, "measures"]:
    """d' = (mean of new − mean of known) / √(½ (variance of new + variance of known)); 1 if none is new."""
    if len(new) < 2:
        return np.ones(known.shape[1])
    apart = new.mean(axis=0) - known.mean(axis=0)
    spread = np.sqrt((new.var(axis=0, ddof=1) + known.var(axis=0, ddof=1)) / 2)
    return np.maximum(apart / np.maximum(spread, LEAST_SPREAD), LEAST_WEIGHT)


def t_tail(t: float, freedom: float) -> float:
    """P(t_ν > t), of Student's t with ν degrees of freedom."""
    return float(stdtr(freedom, -t))


def t_limit(share: float, freedom: float) -> float:
    """The t with P(t_ν > t) = `share`."""
    return float(-stdtrit(freedom, share))
