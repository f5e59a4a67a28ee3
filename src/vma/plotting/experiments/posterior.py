"""Figure 3 and the supplement: q(a|x) as a histogram with its top items, for targets found, mistaken or absent."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vma.plotting.embedding import unpack
from vma.plotting.experiments.style import Answers, sign
from vma.plotting.grids import place_image
from vma.plotting.lookups import Lookup, draw_top
from vma.plotting.style import GREY, INK, TINT, colour_of, dress_bars, new_figure
from vma.plotting.wording import minus

WANTED = (("found", 2), ("mistaken", 1), ("absent", 1))
TITLES = {"found": "found", "mistaken": "mistaken for another class", "absent": "its class is not in memory"}


def posterior_figure(answers: Answers) -> Figure:
    """The memory on the left, and a line for each of a few targets: the target, q(a|x), the top five items."""
    shown = answers["posterior"]["results"]["shown"]
    memory, labels = unpack(shown["memory"]), np.array(shown["memory_labels"])
    targets, chosen = unpack(shown["targets"]), choose(shown["looked_up"])
    figure = new_figure(11.6, 0.5 + 1.2 * max(3, len(chosen)))
    grid = figure.add_gridspec(
        len(chosen), 7, width_ratios=(4.6, 0.25, 0.9, 0.62, 4.0, 0.15, 3.5), left=0.006, right=0.994, top=0.93,
        bottom=0.07, wspace=0, hspace=0.42,
    )  # fmt: skip
    draw_memory(figure.add_subplot(grid[:, 0]), memory, labels)
    ceiling = 1.12 * max(max(each["q"]) for each in chosen)
    for line, each in enumerate(chosen):
        found = lookup(each, targets)
        draw_image(figure.add_subplot(grid[line, 2]), found, each["kind"] == "absent")
        draw_histogram(figure.add_subplot(grid[line, 4]), found, labels, ceiling)
        top = figure.add_subplot(grid[line, 6])
        draw_top(top, found, memory, labels)
        top.set(aspect="equal", anchor="NW")
    return sign(figure, answers)


def choose(looked_up: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first two targets that were found, the first mistaken and the first absent one, if there are any."""
    return [each for kind, count in WANTED for each in [t for t in looked_up if t["kind"] == kind][:count]]


def lookup(each: dict[str, Any], targets: np.ndarray) -> Lookup:
    """One target from the answer."""
    q = np.array(each["q"])
    kept = np.ones(len(q), dtype=bool)
    return Lookup(TITLES[each["kind"]], targets[each["index"]], each["label"], q, each["log_p"], kept)


def draw_image(axes: Axes, found: Lookup, absent: bool) -> None:
    """The target in the frame of its class, or in black if its class is not in memory."""
    place_image(axes, found.target, 0.0, 0.0, INK if absent else colour_of(found.label), 2.2)
    axes.set(xlim=(0, 1), ylim=(1, 0), aspect="equal", anchor="NW")
    axes.axis("off")


def draw_memory(axes: Axes, memory: np.ndarray, labels: np.ndarray) -> None:
    """All items, a row for each class, in the frames of their classes."""
    classes = int(labels.max()) + 1
    items = len(labels) // classes
    axes.set(xlim=(-0.05, items + 0.05), ylim=(classes + 0.05, -0.05), anchor="W")
    axes.axis("off")
    title = f"memory M: {items} items of {classes} unseen classes"
    axes.set_title(title, loc="left", fontsize=8.5, color=GREY, pad=5)
    for place, (item, label) in enumerate(zip(memory, labels, strict=True)):
        place_image(axes, item, float(place % items), float(place // items), colour_of(label), 1.0)
    axes.set_aspect("equal")


def draw_histogram(axes: Axes, found: Lookup, labels: np.ndarray, ceiling: float) -> None:
    """q(a|x) over all addresses in the colours of the classes, with the target's own class shaded."""
    own, addresses = labels == found.label, np.arange(len(labels))
    axes.bar(addresses[own], ceiling, width=1, color=TINT, zorder=0)
    axes.bar(addresses, found.q, width=0.85, color=[colour_of(label) for label in labels], zorder=2)
    axes.set(xlim=(-0.6, len(labels) - 0.4), ylim=(0, ceiling), xticks=[])
    axes.set_ylabel("q(a|x)", fontsize=7.5, color=GREY, labelpad=4)
    axes.set_title(found.title, loc="left", fontsize=8.5, color=INK, weight="bold", pad=4)
    bound = minus(f"log p(x|M) ≈ {found.log_likelihood:.1f}")
    axes.set_title(bound, loc="right", fontsize=8, color=GREY, pad=4)
    dress_bars(axes)
