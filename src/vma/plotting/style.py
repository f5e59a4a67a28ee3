"""What all figures share: colours, paper, bars and axes of one style, and the PNG that a figure becomes."""

import io

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Figure  # callers that name this type import it from here
from PIL import Image

PAPER, INK, GREY, LINE, TINT, BLANK = "#ffffff", "#1c1c24", "#77746c", "#dedbd3", "#e4efed", "#f1efe9"
TEAL, AMBER, BLUE = "#0f766e", "#c2620a", "#3b5b92"
CLASS_COLOURS = ("#0f766e", "#c2620a", "#3b5b92", "#b0325a", "#6b8e23", "#7a4fa3", "#c99a06", "#5b6470")
DPI = 160


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches; no global state is touched."""
    return Figure(figsize=(width, height), dpi=DPI, facecolor=PAPER)


def png(figure: Figure) -> bytes:
    """The figure as PNG with 255 colours, which takes a third of the size; equal figures give equal bytes."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    file = io.BytesIO()
    picture.quantize(255, dither=Image.Dither.NONE).save(file, format="PNG", optimize=True)
    return file.getvalue()


def dress(axes: Axes, title: str) -> None:
    """Title, light grid and legend."""
    axes.set_title(title, loc="left", fontsize=8.5, color=GREY)
    axes.set_xlabel("updates", fontsize=8.5, color=GREY)
    axes.tick_params(labelsize=8, colors=GREY, length=0)
    axes.grid(color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8.5, labelcolor=INK)


def dress_bars(axes: Axes) -> None:
    """A base line, and percentages on the left."""
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.tick_params(axis="y", labelsize=7, colors=GREY, length=0, pad=2)
    axes.locator_params(axis="y", nbins=3)
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(GREY)


def colour_of(label: int | np.integer) -> str:
    """The colour of a class."""
    return CLASS_COLOURS[int(label) % len(CLASS_COLOURS)]
