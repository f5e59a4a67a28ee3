"""What imagining is worth, as tables and as a figure.

    python -m benchmarks.imagining_figure docs/images/imagining-study.png results/imagining-study.json \\
        results/imagining-study-fonts.json

draws the answers of `benchmarks.imagining_study`, a row for each, and prints their tables.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import tyro
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.imagining_study import CLASSIFIERS, EXTRAS
from vma.files import write_atomically
from vma.plotting.style import AMBER, BLUE, GREY, INK, LINE, TEAL, dress_bars, new_figure, png

NAMES = {
    "none": "nothing", "affine": "affine maps of them", "omniglot-crisp": "imagined by `omniglot-crisp`",
    "omniglot": "imagined by `omniglot`", "omniglot-crisp, affine": "imagined by `omniglot-crisp`, affine maps",
}  # fmt: skip
COLOURS = (GREY, BLUE, TEAL, LINE, AMBER)
TITLES = ("logistic regression", "small CNN")
GROUPS = ("1 real example a class", "5 real examples a class")
DATA = {"omniglot": "unseen Omniglot", "font-scripts": "unseen scripts in fonts"}


def shown(row: dict[str, Any]) -> str:
    """A share of right answers with its standard error, in percent."""
    return f"{100 * row['right']['value']:.1f} ± {100 * row['right']['error']:.1f}"


def table(results: list[dict[str, Any]]) -> str:
    """The rows of the lab note: a row for each training set."""
    cells = {(row["classifier"], row["shots"], row["extra"]): shown(row) for row in results}
    lines = [
        "| added to the real examples | logistic, 1 | logistic, 5 | CNN, 1 | CNN, 5 |",
        "|---|---|---|---|---|",
    ]
    for extra in EXTRAS:
        lines.append(
            f"| {NAMES[extra]} | "
            + " | ".join(cells[c, shots, extra] for c in CLASSIFIERS for shots in (1, 5))
            + " |"
        )
    return "\n".join(lines)


def bars(axes: Axes, results: list[dict[str, Any]], classifier: str) -> None:
    """The share of right answers, a group of bars for each number of real examples; a line is the model itself."""
    for place, (extra, colour) in enumerate(zip(EXTRAS, COLOURS, strict=True)):
        rows = [r for r in results if (r["classifier"], r["extra"]) == (classifier, extra)]
        heights, errors = ([row["right"][name] for row in rows] for name in ("value", "error"))
        places = [group + 0.17 * (place - 2) for group in range(len(rows))]
        axes.bar(places, heights, 0.15, yerr=errors, color=colour, label=NAMES[extra].replace("`", ""),
                 error_kw={"elinewidth": 0.8, "ecolor": INK})  # fmt: skip
    itself = [r["right"]["value"] for r in results if (r["classifier"], r["extra"]) == ("q(a|x)", EXTRAS[2])]
    axes.hlines(
        itself, [-0.42, 0.58], [0.42, 1.42], color=INK, linewidth=1, label=f"{EXTRAS[2]} itself, by q(a|x)"
    )


def figure_of(answers: list[dict[str, Any]]) -> Figure:
    """A row for each answer, a panel for each classifier."""
    figure = new_figure(8.4, 0.6 + 2.5 * len(answers))
    panels = figure.subplots(len(answers), 2, squeeze=False)
    for row, found in zip(panels, answers, strict=True):
        data = DATA[found["about"]["data"].split()[0]]
        for axes, classifier, title in zip(row, CLASSIFIERS, TITLES, strict=True):
            bars(axes, found["results"], classifier)
            axes.set_title(f"{data}: {title}, right of 20 ways", loc="left", fontsize=8.5, color=GREY)
            axes.set_xticks(range(2), GROUPS, fontsize=8, color=INK)
            axes.set_ylim(0, 1)
            dress_bars(axes)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, frameon=False, fontsize=7.5, labelcolor=INK)
    figure.subplots_adjust(
        left=0.06, right=0.99, top=1 - 0.3 / figure.get_figheight(), bottom=0.85 / figure.get_figheight(),
        wspace=0.12, hspace=0.35,
    )  # fmt: skip
    return figure


def main(
    figure: Annotated[Path, tyro.conf.Positional], answers: Annotated[tuple[Path, ...], tyro.conf.Positional]
) -> None:
    """Draw the figure, and print the tables."""
    found = [json.loads(path.read_text()) for path in answers]
    write_atomically(figure, png(figure_of(found)))
    for each in found:
        print(each["about"]["data"], table(each["results"]), sep="\n")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
