"""How answers look: a headline and rows of cards, as HTML in a notebook and as one picture everywhere else."""

import base64
import io
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw, ImageShow
from torch import Tensor

from vma.data.contact_sheet import CARD, CELL, GAP, GREY, INK, MARGIN, PAPER, Written, as_card, written
from vma.errors import InputError

COLUMNS = 20  # cards that are shown side by side
# As a picture:
MOST = 5000  # cards in a picture
LINE, HEADLINE = 16, 30  # heights of text
TITLES = 160  # the largest width of titles
# As HTML:
SIDE = 56  # largest side of a thumbnail, in pixels
ROWS = 12  # rows that a notebook shows; further ones are counted
TITLE_STYLE = "flex:0 0 6em;overflow-wrap:anywhere"
CARD_STYLE = "margin:0;text-align:center;font-size:11px;line-height:1.2;overflow-wrap:anywhere"
ROW_STYLE = "display:flex;gap:6px;align-items:flex-start;margin:6px 0"
CARDS_STYLE = "display:flex;flex-wrap:wrap;gap:6px;align-items:flex-start"
IMAGE_STYLE = "image-rendering:pixelated;border:1px solid #b8b4aa;background:#fff;display:block;margin:0 auto"


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


def sheet(exhibit: Exhibit) -> Image.Image:
    """The headline, and below it every row, with a new line after COLUMNS cards."""
    if (count := sum(len(row.cards) for row in exhibit.rows)) > MOST:
        raise InputError(f"A picture holds {MOST} images at most, not {count}: show fewer.")
    lines = [line for row in exhibit.rows for line in broken(row)]
    titles, headline = [fitted(line.title, TITLES) for line in lines], written(exhibit.headline, 14)
    text = max((title.breadth for title in titles), default=0)
    left = MARGIN + (text + 3 * GAP if text else 0)
    width = left + max((len(line.cards) for line in lines), default=0) * (CELL + GAP) + MARGIN
    width = max(width, 2 * MARGIN + headline.breadth)
    picture = Image.new("RGB", (width, 2 * MARGIN + HEADLINE + sum(map(height_of, lines))), PAPER)
    pen, top = ImageDraw.Draw(picture), MARGIN + HEADLINE
    pen.text((MARGIN, MARGIN), headline.text, INK, headline.font)
    for line, title in zip(lines, titles, strict=True):
        pen.text((MARGIN, top + CELL // 2), title.text, GREY, title.font, anchor="lm")
        for column, card in enumerate(line.cards):
            place(picture, card, left + column * (CELL + GAP), top)
        top += height_of(line)
    return picture


def broken(row: Row) -> list[Row]:
    """The row as lines of COLUMNS cards; the first line has its title."""
    starts = range(0, max(1, len(row.cards)), COLUMNS)
    return [Row("" if start else row.title, row.cards[start : start + COLUMNS]) for start in starts]


def height_of(line: Row) -> int:
    """The height of a line, with room for captions if there are any."""
    return CELL + GAP + (LINE if any(card.caption for card in line.cards) else 0)


def place(picture: Image.Image, card: Card, left: int, top: int) -> None:
    """A card with its corner at (left, top), and its caption below."""
    framed = Image.new("RGB", (CELL, CELL), CARD)
    framed.paste(as_card(as_levels(card.image)))
    picture.paste(framed, (left, top))
    caption = fitted(card.caption, CELL)
    place_of_text = (left + CELL // 2, top + CELL + 2)
    ImageDraw.Draw(picture).text(place_of_text, caption.text, GREY, caption.font, anchor="ma")


def fitted(text: str, width: int) -> Written:
    """The text on one line, cut to `width`; empty if no font has its letters."""
    line = written(" ".join(text.split()), 11)
    while line.breadth > width:
        line = replace(line, text=line.text.removesuffix("…")[:-1] + "…")
    return line


class Showable(ABC):
    """An answer that can be looked at."""

    @abstractmethod
    def exhibit(self) -> Exhibit:
        """What there is to see."""

    def picture(self) -> Image.Image:
        """All of it as one picture, to be written by `picture().save("name.png")`."""
        return sheet(self.exhibit())

    def show(self) -> None:
        """Show it below a notebook's cell, or in the picture viewer of this machine."""
        if in_notebook():
            sys.modules["IPython"].display.display(self)
        elif not ImageShow.show(self.picture()):
            raise InputError(
                "There is no viewer of pictures on this machine: write a file instead, "
                'e.g. picture().save("picture.png").'
            )

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows; it loads nothing from elsewhere."""
        return as_html(self.exhibit())


def in_notebook() -> bool:
    """Whether this runs in a kernel that shows HTML."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


def as_html(exhibit: Exhibit) -> str:
    """Text, with thumbnails embedded as PNG; all text from the user is escaped."""
    rows = "".join(map(row_html, exhibit.rows[:ROWS]))
    more = len(exhibit.rows) - ROWS
    rest = f"<div>… and {more} more rows</div>" if more > 0 else ""
    return f"<div><div><b>{escape(exhibit.headline)}</b></div>{rows}{rest}</div>"


def row_html(row: Row) -> str:
    """A row: its title, and beside it its first COLUMNS cards and the number of further ones."""
    cards = "".join(map(card_html, row.cards[:COLUMNS]))
    more = len(row.cards) - COLUMNS
    rest = f"<span>+ {more}</span>" if more > 0 else ""
    title = f'<span style="{TITLE_STYLE}">{escape(row.title)}</span>' if row.title else ""
    return f'<div style="{ROW_STYLE}">{title}<div style="{CARDS_STYLE}">{cards}{rest}</div></div>'


def card_html(card: Card) -> str:
    """A card."""
    height, width = card.image.shape[-2:]
    scale = SIDE / max(height, width)
    box = f"width:{round(scale * width)}px;height:{round(scale * height)}px;{IMAGE_STYLE}"
    hint, alt = escape(card.hint), escape(card.caption or card.hint or "image")
    source = base64.b64encode(png_bytes(on_white(card.image))).decode()
    image = f'<img style="{box}" alt="{alt}" title="{hint}" src="data:image/png;base64,{source}">'
    caption = f"<figcaption>{escape(card.caption)}</figcaption>" if card.caption else ""
    return f'<figure style="{CARD_STYLE};max-width:{2 * SIDE}px">{image}{caption}</figure>'
