"""`glyphs`, the dataset that needs no file: drawn by `vma.data.glyphs` and kept in the cache."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vma.data.cache import cached_arrays
from vma.data.dataset import Dataset
from vma.data.glyphs import draw_glyphs
from vma.errors import InputError


@dataclass(frozen=True)
class GlyphOptions:
    """What to draw.

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


def load_glyphs(part: str, *, size: int = 26, options: GlyphOptions | None = None) -> Dataset:
    """Binary images of invented characters; the classes of `train` and `test` are disjoint."""
    options = options or GlyphOptions()
    if not 0 < options.test_classes < options.classes:
        raise InputError(
            f"glyphs cannot keep {options.test_classes} of {options.classes} classes for testing: "
            "keep 1 or more, and leave one."
        )
    images = _drawn(options, size)
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


def _drawn(options: GlyphOptions, size: int) -> np.ndarray:
    """[classes, drawers, size, size], kept in the cache as bits; a change of the drawing code draws anew."""
    shape = (options.classes, options.drawers, size, size)

    def draw() -> dict[str, np.ndarray]:
        return {"bits": np.packbits(draw_glyphs(*shape[:2], seed=options.seed, size=size) > 0)}

    bits = cached_arrays(f"glyphs-1:{_drawing_code()}:{shape}:{options.seed}", draw)["bits"]
    return np.unpackbits(bits, count=int(np.prod(shape))).reshape(shape) * np.uint8(255)


def _drawing_code() -> str:
    """A hash of the modules that draw, `glyph*.py`."""
    files = sorted(Path(__file__).parent.glob("glyph*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
