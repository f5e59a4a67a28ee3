"""The dataset `glyphs`: invented characters, each drawn by many hands; no file and no download.

`glyph_strokes` invents a character, `glyph_render` draws it. Every image is the same on every machine: the
random words are the raw output of PCG64 seeded by SeedSequence, which NumPy promises never to change
(unlike the methods of its Generator, see NEP 19), and all that follows is integer arithmetic.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import UInt8, UInt64

from vma.data.cache import cached_arrays
from vma.data.dataset import Dataset
from vma.data.glyph_render import HAND, draw, programs
from vma.data.glyph_strokes import DICE, Dice, invent
from vma.errors import InputError

SMALLEST, LARGEST = 16, 105
AT_ONCE = 256  # images; bounds the memory


@dataclass(frozen=True)
class GlyphOptions:
    """What to draw.

    >>> few = vma.data.GlyphOptions(classes=10, test_classes=5, drawers=4)
    >>> len(vma.data.load_dataset("glyphs", "test", glyphs=few))
    20

    Attributes:
        classes: Number of classes in all, for training and testing together.
        test_classes: How many of them are for testing only.
        drawers: Images of each class.
        seed: Another seed draws other classes.
    """

    classes: int = 600
    test_classes: int = 100
    drawers: int = 20
    seed: int = 0


def load_glyphs(part: str, *, size: int = 26, glyphs: GlyphOptions | None = None) -> Dataset:
    """Binary images of invented characters; the classes of `train` and `test` are disjoint."""
    options = glyphs or GlyphOptions()
    if not 0 < options.test_classes < options.classes:
        raise InputError(
            f"glyphs cannot keep {options.test_classes} of {options.classes} classes for testing: "
            "keep 1 or more, and leave one."
        )
    images = cached_glyphs(options, size)
    first = options.classes - options.test_classes
    numbers = range(first, options.classes) if part == "test" else range(first)
    return Dataset(
        name="glyphs",
        split=part,
        images=np.ascontiguousarray(images[numbers.start : numbers.stop].reshape(-1, size, size)),
        labels=np.repeat(np.arange(len(numbers)), options.drawers),
        classes=tuple(f"glyph{number:04d}" for number in numbers),
        provenance=f"Invented characters drawn by program, seed {options.seed}; not Omniglot",
    )


def cached_glyphs(options: GlyphOptions, size: int) -> UInt8[np.ndarray, "classes drawers size size"]:
    """`draw_glyphs`, kept in the cache as bits; a change of the drawing code draws anew."""
    shape = (options.classes, options.drawers, size, size)

    def bits() -> dict[str, np.ndarray]:
        return {"bits": np.packbits(draw_glyphs(*shape[:2], seed=options.seed, size=size) > 0)}

    kept = cached_arrays(f"glyphs-1:{drawing_code()}:{shape}:{options.seed}", bits)["bits"]
    return np.unpackbits(kept, count=int(np.prod(shape))).reshape(shape) * np.uint8(255)


def drawing_code() -> str:
    """A hash of the modules that draw, `glyph*.py`."""
    files = sorted(Path(__file__).parent.glob("glyph*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


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
    check_drawable(classes, drawers, seed, size)
    images = np.zeros((classes, drawers, size, size), dtype=np.uint8)
    at_once = max(1, AT_ONCE // drawers)
    for first in range(0, classes, at_once):
        some = images[first : first + at_once]
        words = np.stack([random_words(seed, first + i, drawers) for i in range(len(some))])
        draw_classes(some, words[:, :DICE], words[:, DICE:])
    return images


def check_drawable(classes: int, drawers: int, seed: int, size: int) -> None:
    """Refuse numbers that cannot be drawn."""
    if classes < 1 or drawers < 1:
        raise InputError(f"glyphs needs at least 1 class and 1 drawer, not {classes} and {drawers}.")
    if not SMALLEST <= size <= LARGEST:
        raise InputError(f"glyphs can be drawn at sizes {SMALLEST} to {LARGEST}, not {size}.")
    if seed < 0:
        raise InputError(f"The seed of glyphs must be 0 or more, not {seed}.")


def random_words(seed: int, number: int, drawers: int) -> UInt64[np.ndarray, "words"]:
    """The random words of one class: first those of its program, then those of one drawer after the other."""
    source = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,)))
    return source.random_raw(DICE + drawers * HAND)


def draw_classes(
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
