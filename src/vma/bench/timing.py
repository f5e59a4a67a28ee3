"""Interleaved timing: every side once per round, so that what else the machine does slows all of them alike."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np
import torch

from vma.checks import check_positive
from vma.errors import InputError

Clock = Literal["wall", "cpu"]
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
SGEMM = "matrix product"


@dataclass(frozen=True)
class Times:
    """Seconds of every side in every round."""

    seconds: dict[str, list[float]]

    def median(self, side: str) -> float:
        """Median seconds of a side."""
        return median(self.seconds[side])

    def ratios(self, slow: str, fast: str) -> list[float]:
        """How many times longer `slow` takes than `fast` in each round."""
        return [s / f for s, f in zip(self.seconds[slow], self.seconds[fast], strict=True)]

    def ratio(self, slow: str, fast: str) -> float:
        """How many times longer `slow` takes than `fast`: the median of the rounds' ratios."""
        return median(self.ratios(slow, fast))


def interleaved(sides: Mapping[str, Callable[[], object]], repeats: int, clock: Clock = "wall") -> Times:
    """Run every side once to warm up, then once in each of `repeats` rounds.

    Args:
        sides: What to time, by name.
        repeats: Number of rounds.
        clock: `wall`, or `cpu`: seconds of this process's threads alone, for a machine that others use too.
    """
    check_positive(repeats=repeats)
    now = CLOCKS[clock]
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for run in sides.values():
        run()
    for _ in range(repeats):
        for name, run in sides.items():
            started = now()
            run()
            seconds[name].append(now() - started)
    return Times(seconds)


class MatrixProduct:
    """A · B of two square float32 matrices: the fastest arithmetic that torch has here."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise InputError(f"The matrices must be at least 1 wide, not {size}.")
        self.left, self.right = torch.rand(2, size, size, dtype=torch.float32)
        self.flops = 2 * size**3

    def __call__(self) -> object:
        """Compute it."""
        return self.left @ self.right


def growth_exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """b of seconds ≈ a · size^b, by least squares of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def fixed_and_per_item(sizes: Sequence[int], costs: Sequence[float | int]) -> tuple[float, float]:
    """(a, b) of cost ≈ a + b · size, by least squares of the relative errors."""
    weights = 1 / np.asarray(costs, dtype=float)
    slope, fixed = np.polyfit(sizes, costs, 1, w=weights)
    return float(fixed), float(slope)


def crossing(sizes: Sequence[int], ours: Sequence[float], other: Sequence[float]) -> float | None:
    """The size from which on `ours` is the smaller one, between measured sizes by log-log interpolation.

    None if it is not the smaller one at the largest size; the smallest size if it is everywhere.
    """
    gap = np.log(np.asarray(ours, dtype=float)) - np.log(np.asarray(other, dtype=float))
    if gap[-1] >= 0:
        return None
    above = np.flatnonzero(gap >= 0)
    if not above.size:
        return float(sizes[0])
    i = int(above[-1])
    share = gap[i] / (gap[i] - gap[i + 1])
    return float(np.exp((1 - share) * np.log(sizes[i]) + share * np.log(sizes[i + 1])))
