"""How answers look: as HTML in a notebook, and as one picture everywhere else."""

import base64
import sys
from abc import ABC, abstractmethod
from html import escape
from typing import Any

from PIL import Image, ImageShow

from vma.errors import InputError
from vma.fewshot.exhibits import COLUMNS, Card, Exhibit, Row, on_white, png_bytes
from vma.fewshot.sheets import sheet

SIDE = 56  # largest side of a thumbnail, in pixels
ROWS = 12  # rows that a notebook shows; further ones are counted
CARD = "margin:0;text-align:center;font-size:11px;line-height:1.2;overflow-wrap:anywhere"
LINE = "display:flex;flex-wrap:wrap;gap:6px;align-items:flex-start;margin:6px 0"
FRAME = "image-rendering:pixelated;border:1px solid #b8b4aa;background:#fff;display:block;margin:0 auto"


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
    """A row: its first COLUMNS cards, and the number of further ones."""
    cards = "".join(map(card_html, row.cards[:COLUMNS]))
    more = len(row.cards) - COLUMNS
    rest = f"<span>+ {more}</span>" if more > 0 else ""
    title = (
        f'<span style="min-width:6em;overflow-wrap:anywhere">{escape(row.title)}</span>' if row.title else ""
    )
    return f'<div style="{LINE}">{title}{cards}{rest}</div>'


def card_html(card: Card) -> str:
    """A card."""
    height, width = card.image.shape[-2:]
    scale = SIDE / max(height, width)
    box = f"width:{round(scale * width)}px;height:{round(scale * height)}px;{FRAME}"
    hint, alt = escape(card.hint), escape(card.caption or card.hint or "image")
    source = base64.b64encode(png_bytes(on_white(card.image))).decode()
    image = f'<img style="{box}" alt="{alt}" title="{hint}" src="data:image/png;base64,{source}">'
    caption = f"<figcaption>{escape(card.caption)}</figcaption>" if card.caption else ""
    return f'<figure style="{CARD};max-width:{2 * SIDE}px">{image}{caption}</figure>'
