"""Means with standard errors, shares with intervals: no number without its uncertainty."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


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


def mean(values: Float[Tensor, "n"]) -> Mean:
    """The mean and its standard error s / √n."""
    return Mean(float(values.mean()), float(values.std()) / math.sqrt(len(values)))


def mean_of(values: Sequence[float]) -> Mean:
    """The mean and its standard error; the error of a single value is unknown, and NaN."""
    tensor = torch.tensor(values, dtype=torch.float64)
    return mean(tensor) if len(tensor) > 1 else Mean(float(tensor.mean()), math.nan)


def wilson(successes: int, trials: int, z: float = 1.96) -> Share:
    """The share and Wilson's interval, which stays inside [0, 1] and has a width even at 0 and 1."""
    p, spread = successes / trials, z * z / trials
    centre, scale = (p + spread / 2) / (1 + spread), 1 / (1 + spread)
    half = scale * math.sqrt(z * z * p * (1 - p) / trials + spread * spread / 4)
    low, high = min(p, centre - half), max(p, centre + half)  # p is inside, but for rounding at 0 and 1
    return Share(p, max(0.0, low), min(1.0, high), trials)


def area_under_curve(lower: Sequence[float], higher: Sequence[float]) -> float:
    """P(l < h) + ½ P(l = h) for l and h drawn from the two lists: the area under the ROC curve."""
    low, high = (torch.tensor(values, dtype=torch.float64) for values in (lower, higher))
    below, equal = low.unsqueeze(1) < high, low.unsqueeze(1) == high
    return float((below.double() + 0.5 * equal.double()).mean())
