"""What the figures of experiments share: labelled axes, error bars, marks for the paper, and notes on the runs."""

import math
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vma.plotting.style import AMBER, BLUE, GREY, INK, TEAL, dress
from vma.plotting.wording import length, thousands

Answer = dict[str, Any]  # as in its JSON file
Answers = Mapping[str, Answer]

MODELS = {"vma": "VMA", "vae": "VAE, no memory", "soft-attention": "soft attention", "gmn": "GMN"}
COLOURS = {"vma": TEAL, "vae": GREY, "soft-attention": AMBER, "gmn": BLUE}
SERIES = (TEAL, BLUE, AMBER, "#b0325a", "#6b8e23", "#7a4fa3", "#c99a06", "#5b6470")
CHARACTERS_PER_INCH = 21  # of the small print
PAPER_MARK: dict[str, Any] = {
    "marker": "D",
    "markerfacecolor": "none",
    "markeredgecolor": INK,
    "linestyle": "none",
}


def label(axes: Axes, title: str, x: str, y: str = "") -> None:
    """Title, axes and legend in the style of all reports."""
    dress(axes, title)
    axes.set_xlabel(x, fontsize=8.5, color=GREY)
    axes.set_ylabel(y, fontsize=8.5, color=GREY)


def by_updates(axes: Axes, title: str) -> None:
    """The same with updates on the horizontal axis, in thousands if there are many."""
    label(axes, title, "updates", "nats")
    axes.locator_params(axis="x", nbins=7)
    if axes.get_xlim()[1] >= 5000:
        axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:g}k" if value else "0")


def metric(axes: Axes, rows: Sequence[Mapping[str, Any]], key: str, colour: str, name: str) -> None:
    """One metric of a learning curve, as it was recorded; a few values are also drawn as dots."""
    points = [(row["update"], row[key]) for row in rows if key in row]
    if points:
        few = "o" if len(points) <= 40 else None
        axes.plot(
            *zip(*points, strict=True), color=colour, linewidth=1.6, label=name, marker=few, markersize=3
        )


def error_of(mean: dict[str, Any]) -> float:
    """The standard error, or 0 if it is not known."""
    error = mean.get("error")
    return error if error is not None and math.isfinite(error) else 0.0


def series(
    axes: Axes, x: Sequence[float], means: Sequence[dict[str, Any]], colour: str, name: str, style: str = "-"
) -> None:
    """Means with their standard errors, joined by a line."""
    values, errors = [mean["value"] for mean in means], [error_of(mean) for mean in means]
    axes.errorbar(x, values, errors, color=colour, label=name, linewidth=1.6, linestyle=style, marker="o",
                  markersize=4, capsize=2.5, elinewidth=0.9)  # fmt: skip


def after(answer: Answer) -> str:
    """E.g. `after 6 000 updates`."""
    return f"after {thousands(answer['model']['updates'])} updates"


def of_maps(model: Mapping[str, Any]) -> str:
    """E.g. ` of 32 maps`, for a convolutional model."""
    return f" of {model['maps']} maps" if model.get("maps") else ""


def sign(figure: Figure, answers: Answers) -> Figure:
    """Write at the foot of the figure what was trained and for how long, on as many lines as necessary."""
    width = round(figure.get_figwidth() * CHARACTERS_PER_INCH)
    lines = wrap("   ".join(circumstances(answers)), width, break_long_words=False)
    figure.text(0.006, 0.012, "\n".join(lines), fontsize=6.5, color=GREY, va="bottom")
    return figure


def length_of(model: Mapping[str, Any]) -> str:
    """How long a model was trained."""
    return length(
        model["updates"], model.get("sleep_updates", 0), model.get("overrides", {}).get("start", "")
    )


def circumstances(answers: Answers) -> list[str]:
    """Runs with their updates and hours, and the data, each once."""
    compared = [pair for answer in answers.values() for pair in answer.get("models", {}).items()]
    single = [answer["model"] for answer in answers.values() if "model" in answer]
    runs = compared or [(model["preset"] or model["kind"], model) for model in single]
    words = [f"{name}: {length_of(model)}{of_maps(model)}, {model['hours']:.2f} h." for name, model in runs]
    data = [answer["data"] for answer in answers.values() if "data" in answer]
    return list(dict.fromkeys([*words, *[f"{each['name']} {each['split']}." for each in data]]))
