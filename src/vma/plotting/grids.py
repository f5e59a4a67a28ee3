"""Images as cards in rows: memory items beside what was imagined from them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from vma.plotting.style import BLUE, GREY, INK, LINE, TEAL, new_figure, png

RUN_GREY, RUN_BLUE = "#8a8f98", "#2f6fb5"  # for a run in progress


@dataclass(frozen=True)
class OneShot:
    """Images of some classes, a row for each.

    Attributes:
        templates: The one item in memory.
        imagined: Samples from p(x|m), where m is that item.
        real: Other drawings of the class.
        others: The name of another model, and its samples from the same items; None if there is none.
        title: The title of the first model's samples.
    """

    templates: Float[np.ndarray, "rows 1 *image"]
    imagined: Float[np.ndarray, "rows samples *image"]
    real: Float[np.ndarray, "rows others *image"]
    others: tuple[str, Float[np.ndarray, "rows samples *image"]] | None = None
    title: str = "imagined from it"


@dataclass(frozen=True)
class SampleRows:
    """Samples of a model in rows.

    Attributes:
        samples: The samples.
        items: The memory item of each row; None for samples from p(x|M), or without a raw memory.
    """

    samples: Float[np.ndarray, "rows samples *image"]
    items: Float[np.ndarray, "rows 1 *image"] | None = None


def one_shot_png(shown: OneShot) -> bytes:
    """A row for each class: its template, samples of p(x|m), perhaps those of another model, and real drawings."""
    others = [] if shown.others is None else [shown.others]
    groups = [shown.templates, shown.imagined, *(images for _, images in others), shown.real]
    titles = ["in memory", shown.title, *(title for title, _ in others), "real, for comparison"]
    return png(grid_figure(groups, titles, [TEAL, INK, *(BLUE for _ in others), GREY]))


def samples_png(shown: SampleRows) -> bytes:
    """A row for each memory item, with samples from it; only samples if there are no items."""
    if shown.items is None:
        return png(grid_figure([shown.samples], ["samples of p(x|M)"], [RUN_BLUE]))
    groups, titles = [shown.items, shown.samples], ["memory", "samples of p(x|m)"]
    return png(grid_figure(groups, titles, [RUN_GREY, RUN_BLUE]))


def grid_figure(groups: Sequence[np.ndarray], titles: Sequence[str], colours: Sequence[str]) -> Figure:
    """Groups of columns side by side, each [rows, columns, height, width], with a title above each."""
    rows, gap = len(groups[0]), 0.45
    columns = sum(group.shape[1] for group in groups) + gap * (len(groups) - 1)
    figure = new_figure(9.6, 9.6 * (rows + 0.5) / columns)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-0.02, columns + 0.02), ylim=(rows + 0.02, -0.48))
    axes.axis("off")
    left = 0.0
    for group, title, colour in zip(groups, titles, colours, strict=True):
        axes.text(left + 0.06, -0.12, title, color=colour, fontsize=10.5, weight="bold")
        place_group(axes, group, left, colour)
        left += group.shape[1] + gap
    return figure


def place_group(axes: Axes, group: np.ndarray, left: float, colour: str) -> None:
    """Draw every image of [rows, columns, height, width] as a card; a group of one column is framed."""
    frame, width = (colour, 2.2) if group.shape[1] == 1 else (LINE, 0.6)
    for row, images in enumerate(group):
        for column, image in enumerate(images):
            place_image(axes, image, left + column, float(row), frame, width)


def place_image(axes: Axes, image: np.ndarray, x: float, y: float, frame: str, width: float) -> None:
    """An image of ink in the unit square at (x, y), with a frame; y points down."""
    near, side = 0.04, 0.92
    extent = (x + near, x + near + side, y + near + side, y + near)
    axes.imshow(
        as_paper(image), cmap="gray", vmin=0, vmax=1, extent=extent, interpolation="nearest", aspect="auto"
    )
    corner = (x + near, y + near)
    axes.add_patch(Rectangle(corner, side, side, fill=False, edgecolor=frame, linewidth=width, zorder=3))


def as_paper(image: np.ndarray) -> np.ndarray:
    """Ink [height, width], or [3, height, width] in colour, as light: white paper is 1, and colours come last."""
    return 1 - (image if image.ndim == 2 else np.moveaxis(image, 0, -1))
