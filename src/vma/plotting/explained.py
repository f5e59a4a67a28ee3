"""Where a model looked for one image: the target, q(a|x) over the memory, and the items with the largest q(a|x)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vma.plotting.fonts import USUAL, families, write_name
from vma.plotting.grids import as_paper, place_image
from vma.plotting.imagined import NamedItems
from vma.plotting.style import GREY, INK, LINE, TEAL, dress_bars, new_figure, png
from vma.plotting.wording import minus, percent, shorten

LEAST, STRIP = 12, 40  # the fewest bars there is room for, and the most items shown above their bars


@dataclass(frozen=True)
class Explained:
    """Where the model looked for one image, and what it found there.

    Attributes:
        target: The image.
        reconstruction: What the model draws, given the first of `top`.
        label: The class with the most mass of q(a|x).
        share: Its mass.
        q: q(a|x) over all items.
        top: The items of the largest q(a|x), in order.
        log_p: log p(x|M), in nats.
        kl_a: How much x told about where to look, in nats.
        kl_z: How much x told about its difference from the item, in nats.
    """

    target: Float[np.ndarray, "*image"]
    reconstruction: Float[np.ndarray, "*image"]
    label: str
    share: float
    q: Float[np.ndarray, "memory"]
    top: Sequence[int]
    log_p: float
    kl_a: float
    kl_z: float


def explained_png(memory: NamedItems, found: Explained) -> bytes:
    """The target and its reconstruction, q(a|x) over the memory, and the items with the largest q(a|x)."""
    figure = new_figure(9.6, 5.2)
    grid = figure.add_gridspec(
        3, 1, height_ratios=(1.5, 1.25, 1.35), left=0.045, right=0.985, top=0.94, bottom=0.02, hspace=0.5
    )
    draw_target(figure.add_subplot(grid[0]), memory, found)
    draw_posterior(figure, figure.add_subplot(grid[1]), memory, found)
    draw_top(figure.add_subplot(grid[2]), memory, found)
    return png(figure)


def draw_target(axes: Axes, memory: NamedItems, found: Explained) -> None:
    """The target, its reconstruction, and the numbers."""
    axes.axis("off")
    place_image(axes, found.target, 0.0, 0.0, INK, 2.0)
    place_image(axes, found.reconstruction, 1.15, 0.0, LINE, 0.8)
    for left, text in ((0.04, "target x"), (1.19, f"made from item {memory.number(found.top[0])}")):
        axes.text(left, -0.04, text, fontsize=8.5, color=GREY)
    write_name(axes, 2.45, 0.16, found.label, otherwise=without_name(memory, found.label), most=44, fontsize=14,
               color=TEAL, weight="bold", va="center")  # fmt: skip
    axes.text(2.45, 0.38, f"{percent(found.share)} of q(a|x)", fontsize=9, color=INK, va="center")
    for place, (name, value, meaning) in enumerate(numbers(found)):
        y = 0.58 + 0.16 * place
        axes.text(2.45, y, name, fontsize=9, color=INK, va="center")
        axes.text(3.74, y, minus(f"{value:.1f} nats"), fontsize=9, color=INK, va="center", ha="right")
        axes.text(3.84, y, meaning, fontsize=8.5, color=GREY, va="center")
    axes.set(xlim=(0, 6.2), ylim=(1.02, -0.12), aspect="equal", anchor="W")


def without_name(memory: NamedItems, label: str) -> str:
    """A name for a class whose own name no font here can write: by its first item."""
    return f"the class of item {list(memory.names).index(label)}" if label in memory.names else ""


def numbers(found: Explained) -> list[tuple[str, float, str]]:
    """Name, value and meaning of each number."""
    return [
        ("log p(x|M)", found.log_p, "how well this memory explains x"),
        ("KL of a", found.kl_a, "what x told about where to look"),
        ("KL of z", found.kl_z, "what x told about how it differs from the item"),
    ]


def draw_posterior(figure: Figure, axes: Axes, memory: NamedItems, found: Explained) -> None:
    """q(a|x) over all items as bars, those of the winning class in colour, with the items above if they fit."""
    q = found.q
    colours = [TEAL if name == found.label else "#a9a69d" for name in memory.names]
    axes.bar(np.arange(len(q)), q, width=0.8, color=colours)
    axes.set(xlim=(-0.6, max(len(q), LEAST) - 0.4), ylim=(0, 1.05 * float(q.max())))
    dress_bars(axes)
    axes.tick_params(axis="x", labelsize=7, colors=GREY, length=0)
    few = len(q) <= STRIP
    axes.set_xticks(range(0, len(q), 1 if few else 5 * (len(q) // STRIP)))
    where = "items in memory" if memory.numbers is None else "items that the search found"
    fonts = families(found.label)
    of_class = "that class" if fonts is None else f"the class {shorten(found.label, 44)}"
    title = f"q(a|x) over the {len(q)} {where}; in colour those of {of_class}"
    axes.set_title(
        title, loc="left", fontsize=8.5, color=GREY, pad=26 if few else 5, family=fonts or (USUAL,)
    )
    if few:
        draw_strip(figure, axes, memory, colours)


def draw_strip(figure: Figure, axes: Axes, memory: NamedItems, colours: Sequence[str]) -> None:
    """Every item above its bar, underlined in its bar's colour."""
    box, low_high = axes.get_position(), axes.get_xlim()
    unit = box.width * figure.get_figwidth() / (low_high[1] - low_high[0])  # inches for each item
    side = min(0.62 * unit, 0.3)
    strip = figure.add_axes((box.x0, box.y1 + 0.008, box.width, side / figure.get_figheight()))
    half = 0.5 * side / unit
    for item, (image, colour) in enumerate(zip(memory.images, colours, strict=True)):
        place = (item - half, item + half, 0.92, 0.0)
        strip.imshow(as_paper(image), cmap="gray", vmin=0, vmax=1, extent=place, aspect="auto")
        strip.plot(place[:2], [1, 1], color=colour, linewidth=1.5)
    strip.set(xlim=low_high, ylim=(1, 0))
    strip.axis("off")


def draw_top(axes: Axes, memory: NamedItems, found: Explained) -> None:
    """The items of the largest q(a|x) with their labels and shares."""
    axes.axis("off")
    axes.text(0.02, -0.06, f"the {len(found.top)} most probable items", fontsize=8.5, color=GREY)
    for place, item in enumerate(found.top):
        won, left = memory.names[item] == found.label, 2.35 * place
        place_image(axes, memory.images[item], left, 0.0, TEAL if won else LINE, 1.8)
        write_name(axes, left + 0.04, 1.1, memory.names[item], most=20, va="center", fontsize=8,
                   color=TEAL if won else INK, weight="bold" if won else "normal")  # fmt: skip
        share = f"{percent(found.q[item])}  item {memory.number(item)}"
        axes.text(left + 0.04, 1.3, share, va="center", fontsize=7.5, color=GREY)
    axes.set(xlim=(0, 12), ylim=(1.5, -0.16), aspect="equal", anchor="W")
