"""Table 1: NLL by number of classes and shots, ours with the paper's beneath."""

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vma.plotting.experiments.style import MODELS, Answers, error_of, sign
from vma.plotting.style import AMBER, GREY, INK, LINE, TEAL, new_figure

PANELS = (
    ("disjoint", "per-class", "target never in M, t images of each class (as in the paper's VMA rows)"),
    ("with-replacement", "total", "target may be in M, t images in all (as in GMN's public code)"),
    ("disjoint", "total", "target never in M, t images in all"),
    ("with-replacement", "per-class", "target may be in M, t images of each class"),
)


PaperNumber = Callable[[str, dict[str, Any]], float | None]


def table_figure(answers: Answers, paper: PaperNumber) -> Figure:
    """Four tables like Table 1, one for each protocol and meaning of shots.

    Args:
        answers: One answer for each model.
        paper: A function from a model's cell to the paper's number, None if there is none.
    """
    shots = next(iter(answers.values()))["shots"]
    lines = [(kind, classes) for kind, answer in answers.items() for classes in answer["classes"]]
    figure = new_figure(11.6, 1.1 + 2 * (0.55 + 0.36 * len(lines)))
    panels = figure.subplots(2, 2).flatten()
    figure.subplots_adjust(left=0.008, right=0.992, top=0.96, bottom=0.05, wspace=0.04, hspace=0.08)
    for axes, (protocol, counts, title) in zip(panels, PANELS, strict=True):
        start_table(axes, title, shots, len(lines))
        for row, (kind, classes) in enumerate(lines):
            cells = of_line(answers[kind], protocol, counts, classes)
            beneath = [paper(kind, cell) for cell in cells]
            draw_line(axes, row, f"{MODELS[kind]}  C = {classes}", cells, beneath)
    return sign(figure, answers)


def start_table(axes: Axes, title: str, shots: Sequence[int], lines: int) -> None:
    """The title and the heading of a table."""
    axes.set(xlim=(-1.8, len(shots) - 0.4), ylim=(lines + 0.3, -1.5))
    axes.axis("off")
    axes.text(-1.75, -1.15, title, fontsize=9, weight="bold", color=INK)
    axes.text(-1.75, -0.45, "t =", fontsize=8.5, color=GREY)
    for column, count in enumerate(shots):
        axes.text(column + 0.06, -0.45, str(count), fontsize=8.5, color=GREY, ha="right")
    axes.axhline(-0.3, color=GREY, linewidth=0.7)


def of_line(answer: dict[str, Any], protocol: str, counts: str, classes: int) -> list[dict[str, Any]]:
    """The cells of one line; with one class, both meanings of shots agree."""
    wanted = (protocol, "per-class" if classes == 1 else counts, classes)
    cells = answer["results"]["cells"]
    return [cell for cell in cells if (cell["protocol"], cell["counts"], cell["classes"]) == wanted]


def draw_line(
    axes: Axes, row: int, name: str, cells: Sequence[dict[str, Any]], paper: Sequence[float | None]
) -> None:
    """Ours with its standard error, and beneath it the paper's in grey."""
    colour = TEAL if name.startswith("VMA") else AMBER
    axes.text(-1.75, row + 0.3, name, fontsize=8.5, color=colour, weight="bold")
    for column, (cell, number) in enumerate(zip(cells, paper, strict=True)):
        mean = cell["nll"]
        axes.text(column + 0.06, row + 0.3, f"{mean['value']:.1f}", fontsize=8.5, ha="right", color=INK)
        axes.text(column + 0.1, row + 0.3, f"± {error_of(mean):.1f}", fontsize=6.5, color=GREY)
        if number is not None:
            axes.text(column + 0.06, row + 0.68, f"{number:.1f}", fontsize=8, ha="right", color=GREY)
    axes.axhline(row + 0.82, color=LINE, linewidth=0.5)
