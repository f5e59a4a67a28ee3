"""What answers show when they are looked at: a headline, and rows of cards with images."""

import io
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

COLUMNS = 20  # cards that are shown side by side


@dataclass(frozen=True, eq=False)
class Card:
    """An image with a few words.

    Attributes:
        image: 0 is empty, 1 is full ink.
        caption: Text below the image.
        hint: Text shown while a pointer rests on it, such as the file it came from.
    """

    image: Float[Tensor, "*image"]
    caption: str = ""
    hint: str = ""


@dataclass(frozen=True, eq=False)
class Row:
    """Cards side by side, and what they are."""

    title: str
    cards: tuple[Card, ...]


@dataclass(frozen=True, eq=False)
class Exhibit:
    """What an answer shows: one line of text, and rows of cards."""

    headline: str
    rows: tuple[Row, ...]


def on_white(image: Float[Tensor, "*image"]) -> Image.Image:
    """Dark ink on white paper, with one pixel for each pixel of the image."""
    paper = 255 - as_levels(image)
    return Image.fromarray(np.ascontiguousarray(np.moveaxis(paper, 0, -1)) if paper.ndim == 3 else paper)


def as_levels(image: Float[Tensor, "*image"]) -> UInt8[np.ndarray, "*image"]:
    """Ink as 8-bit levels: 255 is full."""
    return (image.double().clamp(0, 1) * 255).round().byte().cpu().numpy()


def png_bytes(picture: Image.Image) -> bytes:
    """The picture as PNG."""
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return file.getvalue()
