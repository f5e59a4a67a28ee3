"""Means with standard errors, shares with intervals: no number without its uncertainty."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from scipy.stats import binomtest, mannwhitneyu


@dataclass(frozen=True)
class Mean:
    """A mean and its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class Share:
    """A share of `trials` independent trials, with its 95 % interval (Wilson's)."""

    value: float
    low: float
    high: float
    trials: int


def mean_of(values: Sequence[float], groups: Sequence[Hashable] | None = None) -> Mean:
    """The mean and its standard error √(G/(G − 1) Σ_g r_g²) / n, where r_g sums the deviations of group g from it.

    Values of one group, such as targets of one class, may depend on each other; without `groups`, each value is a
    group. The error of a single group is unknown, and NaN.
    """
    tensor = torch.tensor(values, dtype=torch.float64)
    keys = list(range(len(tensor)) if groups is None else groups)
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    index = torch.tensor([numbers[key] for key in keys])
    sums = torch.zeros(len(numbers), dtype=torch.float64).index_add(0, index, tensor - tensor.mean())
    spread = len(sums) / (len(sums) - 1) * float(sums.square().sum()) if len(sums) > 1 else math.nan
    return Mean(float(tensor.mean()), math.sqrt(spread) / len(tensor))


def wilson(successes: int, trials: int) -> Share:
    """The share and Wilson's interval, which stays inside [0, 1] and has a positive width even at 0 and 1."""
    interval = binomtest(successes, trials).proportion_ci(method="wilson")
    return Share(successes / trials, float(interval.low), float(interval.high), trials)


def area_under_curve(lower: Sequence[float], higher: Sequence[float]) -> float:
    """P(l < h) + ½ P(l = h) for l and h drawn from the two lists: the area under the ROC curve.

    It equals U / (n m) of Mann and Whitney's test.
    """
    found = mannwhitneyu(higher, lower, method="asymptotic")
    return float(found.statistic) / (len(lower) * len(higher))
