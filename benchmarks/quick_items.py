"""The invented characters of the package, drawn in a third of the time: a loop sets the points of the pen.

What comes out is compared with the package's own in every block (`benchmarks.large_items`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numba
import numpy as np

from vma.data import glyph_render
from vma.data.glyph_render import PEN, spline


@contextmanager
def drawn_quickly() -> Iterator[None]:
    """A context in which characters are inked by a compiled loop."""
    with patch.object(glyph_render, "ink", ink):
        yield


def ink(images: np.ndarray, knots: np.ndarray, live: np.ndarray, radius: np.ndarray) -> None:
    """`glyph_render.ink`: sets to 255 each pixel that a pen touches on its way."""
    char, stroke = np.nonzero(live)
    way = spline(knots[char, stroke], n=8 if images.shape[-1] <= 40 else 16)
    stamp(images, char, way, PEN * radius[char, None, None] >> 4)


@numba.njit(cache=True)
def stamp(images: Any, char: Any, way: Any, pen: Any) -> None:
    """Every point of the pen at every point of the way."""
    size = images.shape[2]
    for row in range(len(char)):
        for point in range(way.shape[1]):
            for touched in range(pen.shape[1]):
                x = (way[row, point, 0] + pen[row, touched, 0]) * size >> 16
                y = (way[row, point, 1] + pen[row, touched, 1]) * size >> 16
                images[char[row], y, x] = 255
