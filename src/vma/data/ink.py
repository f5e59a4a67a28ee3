"""Steps from a picture to ink on an empty page, each a function of arrays: 0 is empty paper, 255 is full ink."""

import numpy as np
from jaxtyping import Bool
from PIL import Image
from scipy import ndimage

from vma.data.paper import PALEST, Levels, Light, resized

DRAWN = 104  # pixels of the page on which strokes are drawn anew, about as many as Omniglot's drawings have
PEN = 1.5  # radius of the pen there: pooled, it leaves as much ink as Omniglot's strokes
LONGEST = 2**15  # pixels that a side has when a picture is fitted: a longer one is shortened before
SPECK = 0.01  # parts smaller than this share of the largest are dirt
PARTS = 12  # more parts than this are hardly one character
MIDTONES = 0.5  # a larger share of half-tones in the ink means that the picture is no drawing
LITTLE = 4  # pixels: less ink is hardly a drawing

Mask = Bool[np.ndarray, "_ _"]


def to_full(ink: Levels) -> Levels:
    """Ink scaled so that the strongest is full; an image with next to none stays empty."""
    strongest = int(ink.max())
    return ink if strongest < PALEST else np.rint(ink * (255 / strongest)).astype(np.uint8)


def box(mask: Mask) -> tuple[slice, slice]:
    """The rows and columns that hold everything that is true; all of them where nothing is."""
    if not mask.any():
        return slice(None), slice(None)
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)


def crop(ink: Levels, margin: float) -> Levels:
    """The box around the ink (at least half the strongest), with `margin` of the longer side empty on each edge."""
    if not ink.any():
        return ink
    inside = ink[box(ink >= max(1, int(ink.max()) / 2))]
    return np.pad(inside, round(max(inside.shape) * margin / (1 - 2 * margin)))


def fit(ink: Levels, size: tuple[int, int]) -> Levels:
    """The image in the middle of an empty canvas of the proportions of `size`, scaled by area.

    The longer side is scaled first and the canvas made then: it is small even for a picture as thin as a thread.
    """
    if max(ink.shape) > LONGEST:
        ink = to_size(ink, (min(len(ink), LONGEST), min(ink.shape[1], LONGEST)))
    if ink.shape[0] / size[0] > ink.shape[1] / size[1]:
        return np.ascontiguousarray(fit(ink.T, size[::-1]).T)
    narrow = to_size(ink, (ink.shape[0], size[1]))
    rows = max(round(size[0] * ink.shape[1] / size[1]), len(ink))
    above = (rows - len(ink)) // 2
    return to_size(np.pad(narrow, ((above, rows - len(ink) - above), (0, 0))), size)


def to_size(ink: Levels, size: tuple[int, int]) -> Levels:
    """The image scaled to `size` by area."""
    return np.array(Image.fromarray(ink).resize(size[::-1], Image.Resampling.BOX))


# One width of strokes


def threshold(ink: Levels) -> float:
    """The level from which ink is a stroke: Otsu's, between a quarter and half of the strongest; 256 for none."""
    from skimage.filters import threshold_otsu  # here, since it takes a while to import

    strongest = float(ndimage.gaussian_filter(ink, 1, output=np.float32).max())  # not that of a single pixel
    if strongest < PALEST:
        return 256.0
    return float(np.clip(threshold_otsu(ink), strongest / 4, strongest / 2))


def without_specks(strokes: Mask) -> Mask:
    """The strokes without parts that are very small beside the largest."""
    parts, count = ndimage.label(strokes, np.ones((3, 3)))
    if count < 2:
        return strokes
    areas = np.bincount(parts.ravel())[1:]
    kept = areas >= max(4, SPECK * areas.max())
    return np.concatenate([[False], kept])[parts]


def strokes_of(ink: Levels, margin: float | None) -> Light:
    """How much of each pixel is stroke: 0.5 at the threshold, nothing away from the strokes.

    Args:
        ink: Ink of any size.
        margin: None keeps the whole page; anything else cuts it to the strokes.
    """
    level = threshold(ink)
    strokes = without_specks(ink >= level)
    soft = np.minimum(ink / (2 * level), 1, dtype=np.float32) * ndimage.binary_dilation(strokes, iterations=2)
    return soft if margin is None else soft[box(strokes)]


def paths(strokes: Light, page: tuple[int, int], margin: float | None) -> Mask:
    """The middle lines of strokes, one pixel wide, by Zhang and Suen's thinning, in the middle of a page.

    Args:
        strokes: As of `strokes_of`.
        page: Height and width in pixels.
        margin: Empty share on each edge of the page around the strokes.
    """
    from skimage.morphology import skeletonize

    room = 1 - 2 * (margin or 0)
    scale = room * min(page[0] / strokes.shape[0], page[1] / strokes.shape[1])
    drawn = np.pad(resized(strokes, scale) >= 0.5, 8)  # with room around: an edge must not end a stroke
    return centred(skeletonize(drawn), page)


def centred(picture: Mask, page: tuple[int, int]) -> Mask:
    """The picture in the middle of a page, cut where it is larger."""
    for axis, want in enumerate(page):
        have = picture.shape[axis]
        before = (max(have, want) - min(have, want)) // 2
        if have > want:
            picture = np.take(picture, range(before, before + want), axis)
        else:
            width = (before, want - have - before)
            picture = np.pad(picture, [width if each == axis else (0, 0) for each in (0, 1)])
    return picture


def with_pen(path: Mask) -> Mask:
    """All within the pen's radius of a path."""
    return ndimage.distance_transform_edt(~path) <= PEN if path.any() else path


def pooled(strokes: Mask, fine: int) -> Levels:
    """255 · max over blocks of `fine` × `fine` pixels."""
    height, width = strokes.shape[0] // fine, strokes.shape[1] // fine
    return strokes.reshape(height, fine, width, fine).max((1, 3)).astype(np.uint8) * np.uint8(255)


def redrawn(ink: Levels, size: tuple[int, int], margin: float | None) -> Levels:
    """Every stroke as the path of one pen, drawn at a multiple of `size` and pooled as the paper does.

    Args:
        ink: Ink of any size.
        size: Height and width of the result.
        margin: Empty share on each edge of the page around the ink; None keeps the picture's own.
    """
    strokes = strokes_of(ink, margin)
    fine = max(1, round(DRAWN / max(size)))
    return pooled(with_pen(paths(strokes, (fine * size[0], fine * size[1]), margin)), fine)


# What is odd


def doubt(ink: Levels, prepared: Levels) -> str | None:
    """What is odd about ink on its paper for the drawing of one character, if anything is.

    Args:
        ink: Ink above its paper.
        prepared: What the steps made of it.
    """
    if 0 < np.count_nonzero(prepared) < LITTLE:
        return "hardly any ink is left"
    level = threshold(ink)
    some, half = (
        np.count_nonzero(ink >= level / 2),
        np.count_nonzero((ink >= level / 2) & (ink < 1.5 * level)),
    )
    if half > max(MIDTONES * some, ink.size / 5):
        return "it looks like a photograph, not a drawing"
    parts = ndimage.label(without_specks(ink >= level), np.ones((3, 3)))[1]
    return f"it has {parts} separate parts, more than a character has" if parts > PARTS else None
