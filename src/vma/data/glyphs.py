"""The embedded default dataset `glyphs`: invented characters, each drawn by many hands; no download.

`glyph_strokes` invents a character, `glyph_render` draws it. Every image is the same on every machine: the
random words are the raw output of PCG64 seeded by SeedSequence, which NumPy promises never to change
(unlike the methods of its Generator, see NEP 19), and all that follows is integer arithmetic.
"""

import numpy as np
from jaxtyping import UInt8, UInt64

from vma.data.glyph_render import HAND, draw, programs
from vma.data.glyph_strokes import DICE, Dice, invent
from vma.errors import InputError

SMALLEST, LARGEST = 16, 105
AT_ONCE = 256  # images; bounds the memory


def draw_glyphs(
    classes: int, drawers: int, seed: int, size: int = 26
) -> UInt8[np.ndarray, "classes drawers size size"]:
    """Images of invented characters, one row for each class and one column for each drawer; 0 paper, 255 ink.

    Class c of a seed is the same however many classes are asked for, and so is drawer d of a class.

    Args:
        classes: Number of characters.
        drawers: Number of drawings of each character.
        seed: Which world of characters; any integer from 0.
        size: Height and width of an image, 16 to 105 pixels.
    """
    _check(classes, drawers, seed, size)
    images = np.zeros((classes, drawers, size, size), dtype=np.uint8)
    at_once = max(1, AT_ONCE // drawers)
    for first in range(0, classes, at_once):
        some = images[first : first + at_once]
        words = np.stack([_words(seed, first + i, drawers) for i in range(len(some))])
        _draw(some, words[:, :DICE], words[:, DICE:])
    return images


def _check(classes: int, drawers: int, seed: int, size: int) -> None:
    if classes < 1 or drawers < 1:
        raise InputError(f"glyphs needs at least 1 class and 1 drawer, not {classes} and {drawers}.")
    if not SMALLEST <= size <= LARGEST:
        raise InputError(f"glyphs can be drawn at sizes {SMALLEST} to {LARGEST}, not {size}.")
    if seed < 0:
        raise InputError(f"The seed of glyphs must be 0 or more, not {seed}.")


def _words(seed: int, number: int, drawers: int) -> UInt64[np.ndarray, "words"]:
    """The random words of one class: first those of its program, then those of one drawer after the other."""
    source = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,)))
    return source.random_raw(DICE + drawers * HAND)


def _draw(
    images: UInt8[np.ndarray, "classes drawers size size"],
    dice: UInt64[np.ndarray, "classes dice"],
    hands: UInt64[np.ndarray, "classes hands"],
) -> None:
    """Draws the characters that the dice invent, with the given hands, into the empty images."""
    characters = programs([invent(Dice(row)) for row in dice.tolist()])
    flat, words = images.reshape(-1, *images.shape[2:]), hands.reshape(-1, HAND)
    row = np.arange(len(flat)) // images.shape[1]
    for i in range(0, len(flat), AT_ONCE):
        draw(flat[i : i + AT_ONCE], characters.rows(row[i : i + AT_ONCE]), words[i : i + AT_ONCE])
