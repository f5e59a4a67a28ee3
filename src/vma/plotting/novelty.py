"""The figure of `novelty`: how well new targets are told from known ones, and whether the promised alarms hold."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vma.plotting.style import AMBER, BLUE, GREY, INK, LINE, TEAL, dress, new_figure, png

COLOURS = {
    "joined": INK,
    "angle": TEAL,
    "odds": "#6b8e23",
    "surprise": BLUE,
    "entropy": "#b0325a",
    "nll": "#c99a06",
}


def novelty_png(found: dict[str, Any], measures: dict[str, str]) -> bytes:
    """Three panels: how far apart known and new targets are, the shares found, and the promise on false alarms.

    Args:
        found: The saved answer.
        measures: The name of each measure of the answer; the first is drawn in front.
    """
    figure, results = new_figure(9.6, 3.6), found["results"]
    left, middle, right = figure.subplots(1, 3, gridspec_kw={"width_ratios": (1.25, 1, 1)})
    figure.subplots_adjust(left=0.012, right=0.98, top=0.91, bottom=0.245, wspace=0.2)
    draw_apart(left, results, found["level"])
    draw_curves(middle, results, measures)
    draw_promise(right, results, found["level"])
    sign(figure, found)
    return png(figure)


def draw_apart(axes: Axes, results: dict[str, Any], level: float) -> None:
    """Histograms of the joined measure of known and of new targets, and the threshold between them."""
    edges = np.array(results["histogram"]["edges"])
    for name, colour in (("known", TEAL), ("new", AMBER)):
        counts = np.array(results["histogram"][name], dtype=float)
        axes.stairs(counts / counts.sum(), edges, fill=True, color=colour, alpha=0.55)
        axes.stairs(counts / counts.sum(), edges, color=colour, linewidth=1.2)
    dress(axes, "How unusual an image is for its memory")
    axes.set(ylim=(0, axes.get_ylim()[1] * 1.3), xlim=(edges[0], edges[-1]), yticks=[])
    axes.axvline(results["limit"], color=INK, linewidth=1)
    write_shares(axes, results)
    label(axes, f"three measures, joined; at the line, p = {100 * level:.0f} %")


def write_shares(axes: Axes, results: dict[str, Any]) -> None:
    """Write beside the threshold the shares of known and of new targets that lie beyond it."""
    said = [("→ called novel, of images", INK)]
    for words, key, colour in (
        ("of classes in memory", "false_alarms", TEAL),
        ("of other classes", "found", AMBER),
    ):
        said.append((f"{words}: {100 * results[key]['value']:.1f} %", colour))
    for line, (words, colour) in enumerate(said):
        axes.annotate(words, (results["limit"], 1), (5, -5 - 13 * line), xycoords=("data", "axes fraction"),
                      textcoords="offset points", va="top", fontsize=8, color=colour, weight="bold")  # fmt: skip


def draw_curves(axes: Axes, results: dict[str, Any], measures: dict[str, str]) -> None:
    """Share of new targets found over the share of false alarms, for each measure, with the area under it."""
    for name, text in reversed(measures.items()):
        words = f"{results['areas'][name]['value']:.3f}  {text}"
        width, heights = 2.2 if name == "joined" else 1.1, results["curves"][name]
        levels = np.arange(len(heights)) / (len(heights) - 1)  # of false alarms, from none to all
        axes.plot(levels, heights, color=COLOURS[name], linewidth=width, label=words)
    axes.plot([0, 1], [0, 1], color=LINE, linewidth=1, linestyle=(0, (4, 3)))
    axes.plot(results["false_alarms"]["value"], results["found"]["value"], "o", color=INK, markersize=6,
              markeredgecolor="white")  # fmt: skip
    dress(axes, "New ones found (dot: at the threshold)")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], frameon=False, fontsize=7.2, labelcolor=INK, loc="lower right",
                title="area under the curve", title_fontsize=7.2, handlelength=1.2)  # fmt: skip
    in_percent(axes, 1.0, 0.25)
    label(axes, "false alarms")


def draw_promise(axes: Axes, results: dict[str, Any], level: float) -> None:
    """Real false alarms against promised ones, with 95 % intervals; on the diagonal, the promise is kept."""
    promised = results["promised"]
    levels, value, low, high = (
        np.array([each[key] for each in promised]) for key in ("level", "value", "low", "high")
    )
    top = max(0.2, float(high.max()))
    axes.plot([0, top], [0, top], color=GREY, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.fill_between(levels, low, high, color=TEAL, alpha=0.18, linewidth=0)
    axes.plot(levels, value, color=TEAL, linewidth=1.8)
    axes.plot(level, results["false_alarms"]["value"], "o", color=INK, markersize=6, markeredgecolor="white")
    dress(axes, "False alarms: real, over promised")
    in_percent(axes, top, 0.05)
    axes.set_xlim(0, levels[-1])
    label(axes, "p-value below which an image is called novel")


def in_percent(axes: Axes, top: float, step: float) -> None:
    """Both axes from 0 to `top`, in percent."""
    ticks = np.arange(0, top + 1e-9, step)
    axes.set_xticks(ticks, [f"{100 * tick:.0f} %" for tick in ticks])
    axes.set_yticks(ticks, [f"{100 * tick:.0f} %" for tick in ticks])
    axes.set(xlim=(0, top), ylim=(0, top * 1.02))


def label(axes: Axes, text: str) -> None:
    """The label of the horizontal axis."""
    axes.set_xlabel(text, fontsize=8, color=GREY)


def sign(figure: Figure, found: dict[str, Any]) -> None:
    """Write at the foot of the figure what was measured."""
    data = found["data"]
    text = (
        f"{found['episodes']} memories of {found['classes']} classes × {found['shots']} items; "
        f"{found['targets']} targets of each of these and of {found['absent']} other classes; "
        f"{data['name']} {data['split']}; K = {found['samples']}.\n"
        "What is usual, and so the threshold, is learned from each memory's own items alone."
    )
    figure.text(0.012, 0.025, text, fontsize=7, color=GREY, linespacing=1.4)
