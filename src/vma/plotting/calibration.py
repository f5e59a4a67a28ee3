"""The reliability diagram: how sure recognition was, and how often it was right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vma.plotting.style import AMBER, GREY, INK, TEAL, dress, new_figure, png

LARGEST = 300  # area of the dot for a bin that holds all trials
SMALLEST = 5


@dataclass(frozen=True)
class Dot:
    """Forecasts of similar probability.

    Attributes:
        trials: How many there are.
        probability: Their mean probability.
        right: The share of them that were right.
        low: Lower end of its 95 % interval.
        high: Upper end.
    """

    trials: int
    probability: float
    right: float
    low: float
    high: float


def reliability_png(found: dict[str, Any], dots: Mapping[str, Sequence[Dot]], default: str) -> bytes:
    """A panel for each rule: how often it was right against how sure it was.

    Args:
        found: The saved answer.
        dots: The forecasts of each rule over all tasks, by probability.
        default: The rule that is used unless another is named.
    """
    figure = new_figure(max(5.4, 0.75 + 2.5 * len(dots)), 3.6)
    panels = figure.subplots(1, len(dots), sharey=True, squeeze=False)[0]
    figure.subplots_adjust(left=0.7 / figure.get_figwidth(), right=0.985, top=0.92, bottom=0.24, wspace=0.12)
    for axes, (name, own) in zip(panels, dots.items(), strict=True):
        dress(axes, f"{name} (default)" if name == default else name)
        draw_dots(axes, own, TEAL if name == default else AMBER)
        write_errors(axes, name, found["results"]["tasks"])
    panels[0].set_ylabel("share that was right", fontsize=8.5, color=GREY)
    sign(figure, found)
    return png(figure)


def draw_dots(axes: Axes, dots: Sequence[Dot], colour: str) -> None:
    """All tasks of one rule together: a dot for each bin, whose area shows its trials, with its 95 % interval."""
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    total = sum(dot.trials for dot in dots)
    for dot in dots:
        axes.plot(
            [dot.probability] * 2, [dot.low, dot.high], color=colour, linewidth=1.1, alpha=0.6, zorder=2
        )
        area = max(SMALLEST, LARGEST * dot.trials / total)
        axes.scatter(
            dot.probability, dot.right, s=area, color=colour, edgecolor="white", linewidth=0.6, zorder=3
        )
    axes.set(xlim=(-0.03, 1.06), ylim=(-0.03, 1.06), aspect="equal")
    axes.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    axes.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    axes.set_xlabel("probability that was given", fontsize=8.5, color=GREY)


def write_errors(axes: Axes, name: str, tasks: Sequence[dict[str, Any]]) -> None:
    """The expected calibration error of every task, in the corner below the line."""
    lines = [
        f"{task['ways']}-way {task['shots']}-shot  {task['rules'][name]['calibration_error']:.3f}"
        for task in tasks
    ]
    place: dict[str, Any] = {"transform": axes.transAxes, "ha": "right", "fontsize": 7}
    axes.text(0.97, 0.04, "\n".join(lines), color=INK, linespacing=1.35, **place)
    axes.text(0.97, 0.06 + 0.062 * len(lines), "calibration error", color=GREY, **place)
    axes.text(0.06, 0.84, "too modest", color=GREY, fontsize=7, transform=axes.transAxes)
    axes.text(0.97, 0.5, "too sure", color=GREY, **place)


def sign(figure: Figure, found: dict[str, Any]) -> None:
    """How to read the figure, and what was measured."""
    data = found["data"]
    text = (
        "On the dashed line, probabilities are true. A dot is a tenth of the range, as large as it is full, with "
        f"its 95 % interval.\nAll tasks together, {found['trials']} trials each, on classes of {data['name']} "
        f"{data['split']} that the model has not seen; {found['samples']} draws of z."
    )
    figure.text(0.7 / figure.get_figwidth(), 0.025, text, fontsize=7, color=GREY, linespacing=1.4)
