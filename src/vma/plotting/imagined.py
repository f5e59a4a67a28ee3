"""What was imagined: a line for each memory item, with its label, the item itself, and the samples from it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from vma.plotting.fonts import families, write_name
from vma.plotting.grids import place_image
from vma.plotting.style import GREY, INK, LINE, TEAL, new_figure, png
from vma.plotting.wording import breadth, shorten

CELL = 0.62  # inches
COLUMNS = 8  # samples in a row
GAP = 0.35  # in cells, between an item and what was imagined from it


@dataclass(frozen=True)
class NamedItems:
    """The items of a memory, as figures name them.

    Attributes:
        images: The items, as ink.
        names: The class of each; an item without a label is its own class, called `(item i)`.
        labelled: Whether it has a label.
        numbers: The number of each item in memory, if these are only some of its items.
    """

    images: Float[np.ndarray, "memory *image"]
    names: Sequence[str]
    labelled: Sequence[bool]
    numbers: Sequence[int] | None = None

    def number(self, item: int) -> int:
        """The number in memory of one of these items."""
        return item if self.numbers is None else self.numbers[item]


@dataclass(frozen=True)
class Row:
    """A line of a picture: up to COLUMNS samples, the first of them after the item that they came from."""

    item: int
    first: bool
    samples: list[Float[np.ndarray, "*image"]]


def imagined_png(
    memory: NamedItems, items: Sequence[int], samples: Sequence[Float[np.ndarray, "*image"]]
) -> bytes:
    """What was imagined, a line for each memory item: its label, the item itself, and the samples from it.

    Args:
        memory: The memory.
        items: The item that each sample came from.
        samples: The samples.
    """
    rows = rows_of(items, samples)
    text = text_width([memory.names[row.item] for row in rows], [memory.number(row.item) for row in rows])
    width = text + 1 + GAP + max(len(row.samples) for row in rows) + 0.15
    blocks = best_blocks(len(rows), width)
    height = math.ceil(len(rows) / blocks)
    figure = new_figure(CELL * blocks * width, CELL * (height + 0.6))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, blocks * width), ylim=(height + 0.05, -0.55))
    axes.axis("off")
    for i, row in enumerate(rows):
        place_row(axes, memory, row, (i // height) * width + text, float(i % height))
    for block in range(blocks):
        write_heading(axes, block * width + text)
    return png(figure)


def rows_of(items: Sequence[int], samples: Sequence[Float[np.ndarray, "*image"]]) -> list[Row]:
    """The samples in rows, by the item they came from."""
    rows = []
    for item in sorted(set(items)):
        own = [sample for sample, source in zip(samples, items, strict=True) if source == item]
        rows += [Row(item, start == 0, own[start : start + COLUMNS]) for start in range(0, len(own), COLUMNS)]
    return rows


def best_blocks(rows: int, width: float) -> int:
    """The number of blocks side by side whose picture is nearest to 3:2."""

    def distance(blocks: int) -> float:
        return abs(math.log(blocks * width / (math.ceil(rows / blocks) + 0.6) / 1.5))

    return min(range(1, rows + 1), key=distance)


def text_width(names: Sequence[str], numbers: Sequence[int]) -> float:
    """The width, in cells, of the longest name as it is drawn, with the number of its item below."""
    breadths = [breadth(shorten(name)) for name in names if families(name)]
    return 0.3 + 0.095 * max([len(f"item {max(numbers)}"), *breadths])


def write_heading(axes: Axes, left: float) -> None:
    """Write the titles of a block's columns."""
    axes.text(left + 0.06, -0.14, "memory", color=TEAL, fontsize=8, weight="bold")
    axes.text(left + 1.06 + GAP, -0.14, "imagined", color=INK, fontsize=8, weight="bold")


def place_row(axes: Axes, memory: NamedItems, row: Row, card: float, top: float) -> None:
    """One line: the item at (card, top), its name to its left, and the samples to its right."""
    if row.first:
        write_name(axes, card - 0.12, top + 0.44, memory.names[row.item], ha="right", va="center", fontsize=7.5,
                   color=INK)  # fmt: skip
        if memory.labelled[row.item]:
            number = f"item {memory.number(row.item)}"
            axes.text(card - 0.12, top + 0.72, number, ha="right", va="center", fontsize=6, color=GREY)
        place_image(axes, memory.images[row.item], card, top, TEAL, 1.8)
    for column, sample in enumerate(row.samples):
        place_image(axes, sample, card + 1 + GAP + column, top, LINE, 0.6)
