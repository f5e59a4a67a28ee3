"""Learning curves: of gaps and nonsense too, and as running means."""

import math

import numpy as np
import pytest

from vma.plotting.learning import learning_curves, running_mean


@pytest.mark.parametrize(
    "history",
    [
        [{"update": 1, "nll": 5.0}],
        [
            {"update": 1, "nll": math.nan, "kl_a": 1.0, "kl_z": math.inf},
            {"update": 2, "nll": 3.0, "kl_a": 0.5},
        ],
    ],
)
def test_curves_can_be_drawn_of_gaps_and_nonsense(history: list[dict[str, float | None]]) -> None:
    assert learning_curves(history).startswith(b"\x89PNG")


def test_running_mean_looks_back() -> None:
    assert running_mean(np.array([1.0, 3.0, 5.0, 7.0]), 2).tolist() == [1.0, 2.0, 4.0, 6.0]
