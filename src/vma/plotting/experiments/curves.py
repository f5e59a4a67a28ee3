"""Learning curves: recall (Figure 2A), one-shot (supplement), controls, estimators."""

import math
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from vma.plotting.experiments.style import SERIES, Answer, Answers, by_updates, error_of, label, metric, sign
from vma.plotting.style import AMBER, BLUE, GREY, INK, TEAL, new_figure
from vma.plotting.wording import minus

PARTS = (
    ("nll", TEAL, "NLL bound"),
    ("kl_a", BLUE, "KL(q(a|x) ‖ p(a))"),
    ("kl_z", AMBER, "KL(q(z|m,x) ‖ p(z|m))"),
)


def recall_figure(answers: Answers) -> Figure:
    """Figure 2A: NLL, KL_a and KL_z of recall against updates, with log |M|; right, the last nats enlarged."""
    curve = answers["curve"]["results"]
    figure = new_figure(9.6, 3.7)
    whole, near = figure.subplots(1, 2, width_ratios=(1.5, 1))
    figure.subplots_adjust(left=0.06, right=0.985, top=0.9, bottom=0.2, wspace=0.16)
    level = math.log(curve["memory"])
    for axes, top in ((whole, 1.05 * curve["rows"][0]["nll"]), (near, 2.5 * level)):
        draw_parts(axes, curve["rows"])
        draw_level(axes, level, f"log |M| = log {curve['memory']} = {level:.2f}")
        axes.set_ylim(0, top)
    by_updates(whole, f"recall of MNIST digits, |M| = {curve['memory']}, K = {curve['K']}")
    by_updates(near, "the same, enlarged")
    near.get_legend().remove()
    return sign(figure, answers)


def draw_parts(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """NLL, KL_a and KL_z of one run."""
    for key, colour, name in PARTS:
        metric(axes, rows, key, colour, name)


def draw_level(axes: Axes, level: float, name: str) -> None:
    """A dashed line at a level that something should reach."""
    axes.axhline(level, color=INK, linewidth=1.0, linestyle=(0, (5, 3)), label=name)


def one_shot_figure(answers: Answers) -> Figure:
    """Supplement: NLL on training and held-out classes, KL_a and KL_z, a panel each."""
    curve = answers["curve"]["results"]
    figure = new_figure(9.6, 3.2)
    panels = figure.subplots(1, 3)
    figure.subplots_adjust(left=0.055, right=0.985, top=0.88, bottom=0.22, wspace=0.2)
    metric(panels[0], curve["rows"], "nll", TEAL, "training classes")
    metric(panels[0], curve["rows"], "valid_nll", INK, "held-out classes")
    metric(panels[1], curve["rows"], "kl_a", BLUE, "KL(q(a|x) ‖ p(a))")
    level = math.log(curve["memory"])
    draw_level(panels[1], level, f"log |M| = {level:.2f}")
    metric(panels[2], curve["rows"], "kl_z", AMBER, "KL(q(z|m,x) ‖ p(z|m))")
    for axes, title in zip(panels, (f"NLL, K = {curve['K']}", "the address", "the variation"), strict=True):
        by_updates(axes, title)
    return sign(figure, answers)


def controls_figure(answers: Answers) -> Figure:
    """Learning curves of variants of one model on the left, their NLL on the same test targets on the right."""
    curves = {key.removeprefix("curve "): found for key, found in answers.items() if key.startswith("curve ")}
    figure = new_figure(9.6, 3.4)
    left, right = figure.subplots(1, 2, width_ratios=(1.7, 1))
    figure.subplots_adjust(left=0.06, right=0.985, top=0.89, bottom=0.21, wspace=0.18)
    for colour, (key, found) in zip(SERIES, curves.items(), strict=False):
        metric(left, found["results"]["rows"], "nll", colour, key)
    by_updates(left, "NLL of training images in the course of training")
    draw_models(right, answers["test"])
    return sign(figure, answers)


def draw_models(axes: Axes, answer: Answer) -> None:
    """The NLL of each model on the same targets, with its standard error and its distance from the first's."""
    models = answer["results"]["models"]
    for place, (colour, (key, found)) in enumerate(zip(SERIES, models.items(), strict=False)):
        axes.errorbar(
            found["nll"]["value"], place, xerr=error_of(found["nll"]), color=colour, marker="o", capsize=3
        )
        above = found["above_first"]
        gap = minus(f"{above['value']:+.2f} ± {error_of(above):.2f}") if place else "reference"
        axes.annotate(f"{key}: {gap}", (found["nll"]["value"], place), (0, 8), textcoords="offset points",
                      ha="center", fontsize=8, color=colour)  # fmt: skip
    axes.margins(x=0.35)
    axes.set(ylim=(len(models) - 0.4, -0.8), yticks=[])
    title = f"NLL of {answer['results']['number_of_targets']} unseen targets, K = {answer['samples']}"
    label(axes, title, "nats; lower is better")


def estimators_figure(answers: Answers) -> Figure:
    """NLL on held-out classes against updates, and against minutes, a line for each estimator."""
    curves = {
        key.removeprefix("curve "): [row for row in found["results"]["rows"] if "valid_nll" in row]
        for key, found in answers.items()
        if key.startswith("curve ")
    }
    figure = new_figure(9.6, 4.2)
    left, right = figure.subplots(1, 2, sharey=True)
    figure.subplots_adjust(left=0.06, right=0.985, top=0.92, bottom=0.17, wspace=0.06)
    for axes, key, unit in ((left, "update", 1), (right, "seconds", 60)):
        draw_estimators(axes, curves, key, unit)
    late = [row["valid_nll"] for rows in curves.values() for row in rows[len(rows) // 5 :]]
    left.set_ylim(min(late) - 1, max(late) + 1)
    by_updates(left, "at equal updates; dashed, as far as the slowest got")
    left.set_ylabel("NLL on held-out classes, nats")
    label(right, "at equal wall-clock; dashed, as far as all got", "minutes of training")
    left.get_legend().remove()
    return sign(figure, {"curve": answers[f"curve {next(iter(curves))}"]})


def draw_estimators(axes: Axes, curves: dict[str, list[dict[str, Any]]], key: str, unit: int) -> None:
    """A line for each estimator along `key`, and a mark where the shortest ends."""
    for number, (name, rows) in enumerate(curves.items()):
        x, values = [row[key] / unit for row in rows], [row["valid_nll"] for row in rows]
        axes.plot(x, values, color=SERIES[number], linewidth=1.5, label=name, markersize=3,
                  linestyle="-" if number < 4 else (0, (4, 2)), marker="o" if len(x) < 12 else None)  # fmt: skip
    shortest = min(rows[-1][key] for rows in curves.values()) / unit
    axes.axvline(shortest, color=INK, linewidth=0.8, linestyle=(0, (5, 3)))


NAMES = {
    "vma": ("VMA, K = 4", TEAL, "-"),
    "soft, features": ("soft attention over features at every scale, K = 1", AMBER, "-"),
    "soft, pixels": ("soft attention over pixels, K = 1", AMBER, (0, (3, 2))),
}
CLOCKS = {"cpu": "its CPU time", "wall": "wall-clock"}


def crossover_figure(answers: Answers) -> Figure:
    """Milliseconds of one update, median of several, against |M|; the paper's crossing at 48 as a line."""
    answer = answers["timing"]
    figure = new_figure(7.2, 4.4)
    axes = figure.add_axes((0.1, 0.13, 0.875, 0.79))
    points = answer["results"]["points"]
    sizes = [point["memory"] for point in points]
    for key, (name, colour, style) in NAMES.items():
        times = [1000 * point["seconds"][key] for point in points]
        axes.plot(
            sizes, times, color=colour, linestyle=style, marker="o", markersize=4, linewidth=1.6, label=name
        )
    axes.axvline(48, color=GREY, linewidth=1, linestyle=(0, (5, 3)), label="paper: VMA faster from |M| = 48")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.margins(y=0.25)
    setting = f"{answer['targets']} targets, {answer['maps']} maps, {answer['threads']} thread(s)"
    label(
        axes,
        f"one update, {setting}; {CLOCKS[answer['clock']]}, median",
        "items in memory, |M|",
        "milliseconds",
    )
    return figure
