"""Whether an image is of a class that memory does not hold, by what is usual for images of those it holds."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float

FEWEST = 4  # items that a norm can be made of
UNUSUAL = 0.05  # share of known images that are called novel
LEAST_WEIGHT = 0.1  # of a measure that does not tell known from new in this memory
LEAST_SPREAD = 1e-9  # of items that are copies of each other
STEPS = 2000  # of an integral

Measures = Float[np.ndarray, "items 2"]  # surprise and angle


@dataclass(frozen=True)
class Rule:
    """T = β_s surprise + β_θ angle − β₀, which for known images follows Student's t with ν degrees of freedom.

    Attributes:
        surprise: β_s.
        angle: β_θ.
        offset: β₀.
        freedom: ν.
    """

    surprise: float
    angle: float
    offset: float
    freedom: float

    def statistic(self, surprise: float, angle: float) -> float:
        """T."""
        return self.surprise * surprise + self.angle * angle - self.offset

    def p_value(self, surprise: float, angle: float) -> float:
        """P(t_ν > T): the chance that a known image is as unusual as this one."""
        return t_tail(self.statistic(surprise, angle), self.freedom)

    def largest_surprise(self, angle: float) -> float:
        """The surprise above which an image at that angle is novel."""
        return (t_limit(UNUSUAL, self.freedom) + self.offset - self.angle * angle) / self.surprise


@dataclass(frozen=True)
class Norm:
    """What is usual in a memory, by its own items, each given all the others.

    Attributes:
        typical: Their median surprise; None where novelty cannot be told.
        rule: What makes an image novel; None where that cannot be told.
        reason: Why it cannot, else an empty string.
    """

    typical: float | None
    rule: Rule | None
    reason: str = ""


def norm_of(known: Measures, new: Measures) -> Norm:
    """The norm of items as they look given all others (`known`), and given all of other classes (`new`, or none).

    Both measures are standardised by the known items, weighted by how far each keeps the new ones apart, and
    added; the sum is standardised again. The error of its mean widens it by √(1 + 1/n). Two items that are
    nearest to each other tell nearly the same, so ν = (n − 1) / 2, half of what n independent ones would give.
    """
    count, spread = len(known), np.maximum(known.std(axis=0, ddof=1), LEAST_SPREAD)
    slopes = weights(known, new) / spread
    sums = known @ slopes
    slopes /= max(float(sums.std(ddof=1)), LEAST_SPREAD) * math.sqrt(1 + 1 / count)
    offset = float((known @ slopes).mean())
    rule = Rule(float(slopes[0]), float(slopes[1]), offset, (count - 1) / 2)
    return Norm(float(np.median(known[:, 0])), rule)


def weights(known: Measures, new: Measures) -> Float[np.ndarray, "2"]:
    """d' = (mean of new − mean of known) / √(½ (variance of new + variance of known)); alike where none is new."""
    if len(new) < 2:
        return np.ones(2)
    apart = new.mean(axis=0) - known.mean(axis=0)
    spread = np.sqrt((new.var(axis=0, ddof=1) + known.var(axis=0, ddof=1)) / 2)
    return np.maximum(apart / np.maximum(spread, LEAST_SPREAD), LEAST_WEIGHT)


# Student's t


def t_tail(t: float, freedom: float) -> float:
    """P(t_ν > t) = ∫ cos^(ν−1) φ dφ from arctan(t/√ν) to π/2, over the same from −π/2: with t = √ν tan φ."""
    start = math.atan(t / math.sqrt(freedom))
    return power_of_cosine(start, freedom) / power_of_cosine(-math.pi / 2, freedom)


def power_of_cosine(start: float, freedom: float) -> float:
    """∫ cos^(ν−1) φ dφ from `start` to π/2, by the midpoint rule."""
    width = (math.pi / 2 - start) / STEPS
    angles = start + width * (np.arange(STEPS) + 0.5)
    return float(width * (np.cos(angles) ** (freedom - 1)).sum())


@cache
def t_limit(share: float, freedom: float) -> float:
    """The t with P(t_ν > t) = `share`, by bisection of arctan(t/√ν)."""
    low, high = -math.pi / 2, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        above = power_of_cosine(middle, freedom) > share * power_of_cosine(-math.pi / 2, freedom)
        low, high = (middle, high) if above else (low, middle)
    return math.sqrt(freedom) * math.tan(low)
