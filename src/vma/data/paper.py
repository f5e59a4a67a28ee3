"""The paper of a picture: its level, however it is lit, and the ink above it: 0 is empty paper, 255 full ink."""

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image
from scipy import ndimage

LARGEST = 1024  # pixels of the longer side that are looked at
PALEST = 16  # of 255: weaker ink than this is noise of the paper
SMALL = 32  # pixels of the longer side of the small copy in which paper is looked for
WINDOW = 17  # pixels of a window there, about half of the picture
SHARE = 75  # percentile of a window that is paper: three quarters of it may be ink
BLACK, WHITE = 31, 224  # a border between these may be of dark paper, or of white paper in bad light
SLIGHTLY = 4.0  # levels by which paper stands out from its surroundings itself
CLEARLY = 1.5  # times further from the surroundings on one side than on the other
DARKEST = 0.25  # of the brightest paper: what is darker is ink, however large it is

# Of any size: a step may change it, so that a name of an axis would promise too much.
Levels = UInt8[np.ndarray, "_ _"]
Light = Float[np.ndarray, "_ _"]


def at_most(levels: Levels, side: int = LARGEST) -> Levels:
    """The picture, reduced by area where its longer side has more than `side` pixels."""
    scale = side / max(levels.shape)
    return levels if scale >= 1 else resized(levels, scale)


def resized(levels: np.ndarray, scale: float) -> np.ndarray:
    """The picture at another scale: by area where it gets smaller, smoothly where it gets larger."""
    height, width = (max(1, round(side * scale)) for side in levels.shape)
    how = Image.Resampling.BOX if scale <= 1 else Image.Resampling.BICUBIC
    return np.array(Image.fromarray(levels).resize((width, height), how))


def border_level(levels: Levels) -> float:
    """The median level of the outermost pixels."""
    return float(np.median(np.concatenate([levels[0], levels[-1], levels[:, 0], levels[:, -1]])))


def above_border(ink: Levels) -> Levels:
    """Ink less the level of the border, which is the paper's."""
    paper = np.uint8(border_level(ink))
    return np.maximum(ink, paper) - paper


def above_paper(ink: Levels) -> Levels:
    """255 · (1 − light / paper): ink by how much light it takes from the paper around it, however that is lit."""
    light = 255 - ink
    return np.rint(255 * np.clip(1 - light / local_paper(light), 0, 1)).astype(np.uint8)


def dark_on_light(light: Levels) -> bool:
    """Whether ink is dark: as strokes stand out from their surroundings; where that is not clear, by the border."""
    border = border_level(light)
    small = small_copy(light)
    around = ndimage.gaussian_filter(small, max(small.shape) / 4, mode="nearest")
    dark, bright = np.maximum(np.percentile(small - around, (1, 99)) * (-1, 1), SLIGHTLY)
    if BLACK < border < WHITE and max(dark, bright) > CLEARLY * min(dark, bright):
        return bool(dark > bright)
    return border >= 128


def small_copy(light: Levels) -> Light:
    """The picture with at most `SMALL` pixels a side."""
    return resized(light.astype(np.float32), min(1.0, SMALL / max(light.shape)))


def local_paper(light: Levels) -> Light:
    """The level of the paper at every pixel: a smooth surface, times what that misses around the pixel."""
    small = np.maximum(small_copy(light), 1.0)
    bright = np.maximum(brightest_around(small), DARKEST * small.max())
    surface = smooth_surface(small, small >= 0.85 * bright)
    missed = np.maximum(brightest_around(small / surface), DARKEST)
    paper = surface * ndimage.gaussian_filter(missed, WINDOW / 4, mode="nearest")
    back = Image.fromarray(paper.astype(np.float32)).resize(light.shape[::-1], Image.Resampling.BICUBIC)
    return np.maximum(np.asarray(back), 1.0)


def brightest_around(levels: Light) -> Light:
    """A high percentile of a wide window around every pixel."""
    return ndimage.percentile_filter(levels, SHARE, size=WINDOW, mode="nearest")


def smooth_surface(levels: Light, paper: np.ndarray) -> Light:
    """The polynomial of degree 2 in both directions that is nearest to the levels where there is paper."""
    down, across = np.meshgrid(*(np.linspace(-1, 1, side) for side in levels.shape), indexing="ij")
    terms = np.stack([down**0, down, across, down * across, down**2, across**2], -1)
    weights = np.linalg.lstsq(terms[paper], levels[paper], rcond=None)[0]
    return np.clip(terms @ weights, levels[paper].min(), levels[paper].max())
