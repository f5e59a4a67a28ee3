"""Pictures of what was imagined, and of what the model looked at, as PNG."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from vma.fewshot.explanation import Explanation
from vma.fewshot.image_memory import ImageMemory
from vma.fewshot.imagination import Imagined
from vma.report.pictures import (
    GREY,
    INK,
    LINE,
    TEAL,
    as_paper,
    dress_bars,
    new_figure,
    percent,
    place_image,
    png,
)

CELL = 0.62  # inches
COLUMNS = 8  # samples in a row
LONGEST = 28  # characters of a label
GAP = 0.35  # cells between an item and what was imagined from it
LEAST, STRIP = 12, 40  # bars that have room at least, and items up to which all of them are shown above


@dataclass(frozen=True)
class Row:
    """A line of a picture: up to COLUMNS samples, and before the first of them the item they came from."""

    item: int
    first: bool
    samples: list[Float[Tensor, "*image"]]


def imagined_png(memory: ImageMemory, imagined: Imagined, *, binary: bool = False) -> bytes:
    """What was imagined, a line for each memory item: its label, the item itself, and the samples from it.

    Args:
        memory: The memory.
        imagined: What `memory.imagine` gave.
        binary: Show binary images instead of the probability of ink.
    """
    shown = imagined.images if binary else imagined.shown
    rows = rows_of(imagined.items.tolist(), list(shown))
    columns = max(len(row.samples) for row in rows)
    text = text_width([memory.names[row.item] for row in rows])
    width = text + 1 + GAP + columns + 0.15
    blocks = best_blocks(len(rows), width)
    height = math.ceil(len(rows) / blocks)
    figure = new_figure(CELL * blocks * width, CELL * (height + 0.6))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, blocks * width), ylim=(height + 0.05, -0.55))
    axes.axis("off")
    for i, row in enumerate(rows):
        place_row(axes, memory, row, (i // height) * width + text, float(i % height))
    for block in range(blocks):
        left = block * width + text
        axes.text(left + 0.06, -0.14, "memory", color=TEAL, fontsize=8, weight="bold")
        axes.text(left + 1.06 + GAP, -0.14, "imagined", color=INK, fontsize=8, weight="bold")
    return quiet_png(figure)


def rows_of(items: Sequence[int], samples: Sequence[Float[Tensor, "*image"]]) -> list[Row]:
    """The samples in rows, by the item they came from."""
    rows = []
    for item in sorted(set(items)):
        own = [sample for sample, source in zip(samples, items, strict=True) if source == item]
        rows += [Row(item, start == 0, own[start : start + COLUMNS]) for start in range(0, len(own), COLUMNS)]
    return rows


def best_blocks(rows: int, width: float) -> int:
    """The number of blocks side by side that gives a picture nearest to 3:2."""

    def distance(blocks: int) -> float:
        return abs(math.log(blocks * width / (math.ceil(rows / blocks) + 0.6) / 1.5))

    return min(range(1, rows + 1), key=distance)


def text_width(names: Sequence[str]) -> float:
    """Cells that the longest name needs, as it is drawn, with the number of its item below it."""
    return 0.3 + 0.095 * max(len(f"item {len(names)}"), *(len(shorten(name)) for name in names))


def place_row(axes: Axes, memory: ImageMemory, row: Row, card: float, top: float) -> None:
    """One line: the item at (card, top), its name to the left of it, the samples to the right."""
    if row.first:
        axes.text(card - 0.12, top + 0.44, shorten(memory.names[row.item]), ha="right", va="center", fontsize=7.5,
                  color=INK)  # fmt: skip
        if memory.labels[row.item] is not None:
            axes.text(
                card - 0.12, top + 0.72, f"item {row.item}", ha="right", va="center", fontsize=6, color=GREY
            )
        place_image(axes, memory.items[row.item].cpu().numpy(), card, top, TEAL, 1.8)
    for column, sample in enumerate(row.samples):
        place_image(axes, sample.cpu().numpy(), card + 1 + GAP + column, top, LINE, 0.6)


def explained_png(memory: ImageMemory, found: Explanation) -> bytes:
    """The target and what the model makes of it, q(a|x) over the memory, and the items it looked at most."""
    figure = new_figure(9.6, 5.2)
    grid = figure.add_gridspec(
        3, 1, height_ratios=(1.5, 1.25, 1.35), left=0.045, right=0.985, top=0.94, bottom=0.02, hspace=0.5
    )
    draw_target(figure.add_subplot(grid[0]), found)
    draw_posterior(figure, figure.add_subplot(grid[1]), memory, found)
    draw_top(figure.add_subplot(grid[2]), memory, found)
    return quiet_png(figure)


def draw_target(axes: Axes, found: Explanation) -> None:
    """The target, its reconstruction, and the numbers."""
    axes.axis("off")
    place_image(axes, found.target.cpu().numpy(), 0.0, 0.0, INK, 2.0)
    place_image(axes, found.reconstruction.cpu().numpy(), 1.15, 0.0, LINE, 0.8)
    for left, text in ((0.04, "target x"), (1.19, f"made from item {found.top[0].item}")):
        axes.text(left, -0.04, text, fontsize=8.5, color=GREY)
    share = percent(found.probabilities[found.label])
    axes.text(2.45, 0.16, shorten(found.label, 44), fontsize=14, color=TEAL, weight="bold", va="center")
    axes.text(2.45, 0.38, f"{share} of q(a|x)", fontsize=9, color=INK, va="center")
    for place, (name, value, meaning) in enumerate(numbers(found)):
        y = 0.58 + 0.16 * place
        axes.text(2.45, y, name, fontsize=9, color=INK, va="center")
        axes.text(
            3.74, y, f"{value:.1f} nats".replace("-", "−"), fontsize=9, color=INK, va="center", ha="right"
        )
        axes.text(3.84, y, meaning, fontsize=8.5, color=GREY, va="center")
    axes.set(xlim=(0, 6.2), ylim=(1.02, -0.12), aspect="equal", anchor="W")


def numbers(found: Explanation) -> list[tuple[str, float, str]]:
    """Name, value and meaning of each number."""
    return [
        ("log p(x|M)", found.log_p, "how well this memory explains x"),
        ("KL of a", found.kl_a, "what x told about where to look"),
        ("KL of z", found.kl_z, "what x told about how it differs from the item"),
    ]


def draw_posterior(figure: Figure, axes: Axes, memory: ImageMemory, found: Explanation) -> None:
    """q(a|x) over all items: bars, those of the winning class in colour, and above them the items if they fit."""
    q = found.q.double().cpu().numpy()
    colours = [TEAL if name == found.label else "#a9a69d" for name in memory.names]
    axes.bar(np.arange(len(q)), q, width=0.8, color=colours)
    axes.set(xlim=(-0.6, max(len(q), LEAST) - 0.4), ylim=(0, 1.05 * float(q.max())))
    dress_bars(axes)
    axes.tick_params(axis="x", labelsize=7, colors=GREY, length=0)
    step = max(1, len(q) // STRIP)
    axes.set_xticks(range(0, len(q), 1 if len(q) <= STRIP else 5 * step))
    title = (
        f"q(a|x) over the {len(q)} items in memory; in colour those of the class {shorten(found.label, 44)}"
    )
    few = len(q) <= STRIP
    axes.set_title(title, loc="left", fontsize=8.5, color=GREY, pad=26 if few else 5)
    if few:
        draw_strip(figure, axes, memory, colours)


def draw_strip(figure: Figure, axes: Axes, memory: ImageMemory, colours: Sequence[str]) -> None:
    """Every item above its bar, underlined in the colour of it."""
    box, low_high = axes.get_position(), axes.get_xlim()
    unit = box.width * figure.get_figwidth() / (low_high[1] - low_high[0])  # inches for each item
    side = min(0.62 * unit, 0.3)
    strip = figure.add_axes((box.x0, box.y1 + 0.008, box.width, side / figure.get_figheight()))
    half = 0.5 * side / unit
    for item, colour in enumerate(colours):
        image, place = memory.items[item].cpu().numpy(), (item - half, item + half, 0.92, 0.0)
        strip.imshow(as_paper(image), cmap="gray", vmin=0, vmax=1, extent=place, aspect="auto")
        strip.plot(place[:2], [1, 1], color=colour, linewidth=1.5)
    strip.set(xlim=low_high, ylim=(1, 0))
    strip.axis("off")


def draw_top(axes: Axes, memory: ImageMemory, found: Explanation) -> None:
    """The items of the largest q(a|x) with their labels and shares."""
    axes.axis("off")
    axes.text(0.02, -0.06, f"the {len(found.top)} most probable items", fontsize=8.5, color=GREY)
    for place, each in enumerate(found.top):
        won = memory.names[each.item] == found.label
        left = 2.35 * place
        place_image(axes, memory.items[each.item].cpu().numpy(), left, 0.0, TEAL if won else LINE, 1.8)
        axes.text(left + 0.04, 1.1, shorten(memory.names[each.item], 20), va="center", fontsize=8,
                  color=TEAL if won else INK, weight="bold" if won else "normal")  # fmt: skip
        axes.text(
            left + 0.04, 1.3, f"{percent(each.q)}  item {each.item}", va="center", fontsize=7.5, color=GREY
        )
    axes.set(xlim=(0, 12), ylim=(1.5, -0.16), aspect="equal", anchor="W")


def quiet_png(figure: Figure) -> bytes:
    """The figure as PNG; letters that its font does not have are drawn as boxes, without a warning for each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        return png(figure)


def shorten(name: str, most: int = LONGEST) -> str:
    """A name that fits, its middle left out; drawn as it is, with no markup read into it."""
    plain = name.replace("$", r"\$")
    return plain if len(plain) <= most else f"{plain[: most // 2]}…{plain[-(most // 2 - 1) :]}"
