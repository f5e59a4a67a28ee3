"""Where a model looks in memory: q(a|x) over all items for a few targets, and the items with the largest q(a|x)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from matplotlib.axes import Axes

from vma.plotting.grids import place_image
from vma.plotting.style import BLANK, GREY, INK, TINT, colour_of, dress_bars, new_figure, png
from vma.plotting.wording import minus, percent

TOP = 5  # number of items shown, those with the largest q(a|x)


@dataclass(frozen=True)
class Lookup:
    """Where the model looks for one target.

    Attributes:
        title: The rule by which the target was chosen.
        target: The image x.
        label: Its class.
        q: q(a|x); 0 at items that were taken out.
        log_likelihood: The K-sample bound of log p(x|M).
        kept: False at items that were taken out.
    """

    title: str
    target: Float[np.ndarray, "*image"]
    label: int
    q: Float[np.ndarray, "memory"]
    log_likelihood: float
    kept: Bool[np.ndarray, "memory"]


@dataclass(frozen=True)
class Lookups:
    """A memory, the class of each of its items, and where the model looks in it for some targets."""

    memory: Float[np.ndarray, "memory *image"]
    labels: Int[np.ndarray, "memory"]
    found: Sequence[Lookup]


def lookups_png(shown: Lookups) -> bytes:
    """The memory as a strip at the top, and below it a line for each target, with bars under the items."""
    found, figure = shown.found, new_figure(9.6, 0.6 + 1.5 * len(shown.found))
    grid = figure.add_gridspec(
        1 + len(found), 5, width_ratios=(0.95, 0.42, 5.6, 0.12, 3.1), height_ratios=(0.16, *[1] * len(found)),
        left=0.006, right=0.994, top=0.955, bottom=0.02, wspace=0, hspace=0.52,
    )  # fmt: skip
    ceiling = 1.12 * max(float(each.q.max()) for each in found)
    left, middle, right = (figure.add_subplot(grid[0, column]) for column in (0, 2, 4))
    draw_headings(left, middle, right, shown)
    for row, each in enumerate(found, start=1):
        target, bars, top = (figure.add_subplot(grid[row, column]) for column in (0, 2, 4))
        draw_target(target, each)
        draw_bars(bars, each, shown.labels, ceiling)
        draw_top(top, each, shown.memory, shown.labels)
    return png(figure)


def draw_headings(left: Axes, middle: Axes, right: Axes, shown: Lookups) -> None:
    """The titles of the columns, and above the bars every item in the frame of its class."""
    items, classes = len(shown.memory), shown.labels.max() + 1
    about = f"memory M: {items} items of {classes} unseen classes, a colour for each class"
    for axes, text in ((left, "target x"), (middle, about), (right, f"the {TOP} most probable items")):
        axes.axis("off")
        axes.set_title(text, loc="left", fontsize=8.5, color=GREY, pad=4)
    middle.set(xlim=(-0.6, items - 0.4), ylim=(1, 0), aspect="equal", anchor="N")
    for address, (item, label) in enumerate(zip(shown.memory, shown.labels, strict=True)):
        place_image(middle, item, address - 0.5, 0.0, colour_of(label), 1.0)


def draw_target(axes: Axes, found: Lookup) -> None:
    """The target, in the frame of its class."""
    axes.set(xlim=(0, 1), ylim=(1, 0), aspect="equal", anchor="NW")
    axes.axis("off")
    place_image(axes, found.target, 0.0, 0.0, colour_of(found.label), 2.2)


def draw_bars(axes: Axes, found: Lookup, labels: np.ndarray, ceiling: float) -> None:
    """q(a|x) over all addresses, in the colours of the classes, with the target's own class shaded."""
    own, addresses = labels == found.label, np.arange(len(labels))
    axes.bar(addresses[own], ceiling, width=1, color=TINT if found.kept[own].all() else BLANK, zorder=0)
    if not found.kept[own].any():
        centre = (float(addresses[own].mean()), ceiling / 2)
        axes.text(*centre, "taken\nout", ha="center", va="center", fontsize=8, color=GREY)
    axes.bar(addresses, found.q, width=0.8, color=[colour_of(label) for label in labels], zorder=2)
    axes.set(xlim=(-0.6, len(labels) - 0.4), ylim=(0, ceiling), xticks=[])
    axes.set_title(outcome(found, own), loc="right", fontsize=8.5, color=GREY, pad=4)
    axes.set_title(found.title, loc="left", fontsize=8.5, color=INK, weight="bold", pad=4)
    dress_bars(axes)


def outcome(found: Lookup, own: Bool[np.ndarray, "memory"]) -> str:
    """The share of q(a|x) on the target's own class, and the bound of log p(x|M)."""
    share = f"own class {percent(float(found.q[own].sum()))}    " if found.kept[own].any() else ""
    return minus(f"{share}log p(x|M) ≈ {found.log_likelihood:.1f}")


def draw_top(axes: Axes, found: Lookup, memory: np.ndarray, labels: np.ndarray) -> None:
    """The items of the largest q(a|x), with their probability and the frame of their class."""
    count = min(TOP, int(found.kept.sum()))
    axes.set(xlim=(0, TOP), ylim=(1.4, 0), aspect="equal", anchor="W")
    axes.axis("off")
    for place, address in enumerate(np.argsort(-found.q, kind="stable")[:count]):
        right = labels[address] == found.label
        place_image(axes, memory[address], float(place), 0.0, colour_of(labels[address]), 1.8)
        mark = " ✓" if right else ""
        axes.text(place + 0.5, 1.08, percent(found.q[address]) + mark, ha="center", va="top", fontsize=8,
                  color=INK if right else GREY, weight="bold" if right else "normal")  # fmt: skip
