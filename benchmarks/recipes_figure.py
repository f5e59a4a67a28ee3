"""The learning curves of `benchmarks/recipes.py`, drawn from its JSON.

python -m benchmarks.recipes_figure
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.recipes import RECIPES, rows_of
from vma.plotting.experiments.style import SERIES, label
from vma.plotting.style import BLUE, GREY, INK, TEAL

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/images/recipes.png"
SHORT_RUNS, LONG_RUNS = (ROOT / f"results/recipes-32{time}.json" for time in ("", "-1800s"))
SHORT, LONG = "... + Muon on kernels + DReG", "... + modern + Muon + DReG"
WINNERS = {SHORT: BLUE, LONG: TEAL}
OTHERS = (GREY, *SERIES[2:7], "#d1709f")
Rows = Sequence[Mapping[str, Any]]


def curves(rows: Rows, recipe: str) -> tuple[np.ndarray, np.ndarray]:
    """Minutes, and NLL of every seed at each of them."""
    looks = [row["curve"] for row in rows if row["recipe"] == recipe]
    minutes = np.array([look["seconds"] / 60 for look in looks[0]])
    return minutes, np.array([[look["valid_nll"] for look in curve] for curve in looks])


def draw(axes: Axes, rows: Rows, recipes: Sequence[str], title: str) -> None:
    """Means over seeds: the winners in front."""
    others = iter(OTHERS)
    for recipe in recipes:
        minutes, nll = curves(rows, recipe)
        front = recipe in WINNERS
        axes.plot(minutes, nll.mean(0), color=WINNERS.get(recipe) or next(others), label=recipe, marker="o",
                  markersize=3, linewidth=2.4 if front else 1.2, zorder=3 if front else 2)  # fmt: skip
    label(axes, title, "minutes of one thread", "NLL of held-out training classes, nats")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.055 * len(recipes) * (high - low))  # room for the names
    axes.legend(fontsize=7, frameon=False, labelcolor=INK, loc="upper right")


def draw_seeds(axes: Axes, rows: Rows, title: str) -> None:
    """The winners for half an hour: each seed thin, their mean thick."""
    for recipe, colour in WINNERS.items():
        minutes, nll = curves(rows, recipe)
        axes.plot(minutes, nll.T, color=colour, linewidth=0.7, alpha=0.6)
    draw(axes, rows, list(WINNERS), title)


def figure() -> Figure:
    """What is trained how, alone and together; K and estimators; and the two best for half an hour."""
    found = Figure(figsize=(13.5, 4.6), layout="constrained")
    left, middle, right = found.subplots(1, 3)
    short, long = rows_of(SHORT_RUNS), rows_of(LONG_RUNS)
    ran = {row["recipe"] for row in short}
    of_k = [name for name in RECIPES if name in ran and name.startswith("Muon on kernels + DReG,")]
    draw(left, short, [name for name in RECIPES if name in ran - {*of_k}], "layers, optimisers, gradients")
    draw(middle, short, [SHORT, *of_k], "K (else 4) and the estimator (else VIMCO)")
    draw_seeds(right, long, "the two best, for half an hour: three seeds and their mean")
    return found


if __name__ == "__main__":
    figure().savefig(PICTURE, dpi=130)
