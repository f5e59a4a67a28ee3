"""An exhibit as one picture, drawn by Pillow alone."""

from dataclasses import replace

from PIL import Image, ImageDraw

from vma.data.contact_sheet import CARD, CELL, GAP, GREY, INK, MARGIN, PAPER, Written, as_card, written
from vma.errors import InputError
from vma.fewshot.exhibits import COLUMNS, Card, Exhibit, Row, as_levels

MOST = 5000  # cards in a picture
LINE, HEADLINE = 16, 30  # heights of text
TITLES = 160  # the largest width of titles


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
