"""A contact sheet: one row of images for each class, on paper."""

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from jaxtyping import Int
from PIL import Image, ImageDraw, ImageFont

from vma.data.dataset import Dataset
from vma.data.randomness import stream
from vma.errors import InputError

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

PAPER, CARD, INK, GREY = (250, 249, 246), (255, 255, 255), (28, 28, 36), (120, 118, 112)
CELL, GAP, MARGIN, HEADER = 56, 4, 28, 64


def contact_sheet(dataset: Dataset, *, rows: int = 12, columns: int = 20, seed: int = 0) -> Image.Image:
    """A picture of up to `rows` classes with up to `columns` images each, both drawn at random by `seed`.

    >>> vma.data.contact_sheet(vma.data.load_dataset("glyphs", "test"), rows=2, columns=5)
    <PIL.Image.Image image ...>
    """
    if rows < 1 or columns < 1:
        raise InputError(f"A contact sheet needs at least one row and one column, not {rows} and {columns}.")
    table = choose_images(dataset, rows, columns, seed)
    names = [written(name, 12) for name in row_names(dataset, table)]
    heading = written(f"{dataset.name}  {dataset.split}", 18)
    summary = written(summarise(dataset), 12)
    breadth = max(name.breadth for name in names)
    left = MARGIN + (breadth + 14 if breadth else 0)
    width = left + max(map(len, table)) * (CELL + GAP) + MARGIN - GAP
    width = max(width, MARGIN * 2 + heading.breadth, MARGIN * 2 + summary.breadth)
    sheet = Image.new("RGB", (width, MARGIN + HEADER + len(table) * (CELL + GAP) + MARGIN - GAP), PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((MARGIN, MARGIN - 4), heading.text, INK, heading.font)
    pen.text((MARGIN, MARGIN + 24), summary.text, GREY, summary.font)
    for row, (name, indices) in enumerate(zip(names, table, strict=True)):
        y = MARGIN + HEADER + row * (CELL + GAP)
        pen.text((MARGIN, y + CELL // 2), name.text, GREY, name.font, anchor="lm")
        for column, index in enumerate(indices):
            sheet.paste(as_card(dataset.images[index]), (left + column * (CELL + GAP), y))
    return sheet


@dataclass(frozen=True)
class Written:
    """A text with a font that has its letters."""

    text: str
    font: Font

    @property
    def breadth(self) -> int:
        """Its width in pixels."""
        return int(self.font.getlength(self.text))


def written(text: str, size: int) -> Written:
    """The text with a font for it, or no text if no font here has its letters."""
    font = font_with(text, size)
    return Written("", ImageFont.load_default(size)) if font is None else Written(text, font)


def font_with(text: str, size: int) -> Font | None:
    """A font that has every letter of `text`: one of matplotlib's or the system's; for Latin, else Pillow's own."""
    if find_spec("matplotlib") is None:
        return ImageFont.load_default(size) if all(ord(letter) < 256 for letter in text) else None
    from vma.plotting.fonts import file_with  # here, since plotting takes a second to import

    found = file_with(text)
    return None if found is None else ImageFont.truetype(found[0], size, index=found[1])


def choose_images(dataset: Dataset, rows: int, columns: int, seed: int) -> list[Int[np.ndarray, "row"]]:
    """Indices of images for each row: one class per row, or any images if there are no classes."""
    draw = stream(seed)
    if dataset.labels is None:
        count = min(rows * columns, len(dataset))
        indices = np.sort(draw.permutation(len(dataset))[:count])
        return np.split(indices, range(columns, count, columns))
    present = np.unique(dataset.labels)
    chosen = np.sort(draw.permutation(present)[:rows])
    members = [np.flatnonzero(dataset.labels == c) for c in chosen]
    return [np.sort(draw.permutation(indices)[:columns]) for indices in members]


def row_names(dataset: Dataset, table: list[Int[np.ndarray, "row"]]) -> list[str]:
    """The class of each row, long names shortened in the middle; empty without labels."""
    if dataset.labels is None:
        return ["" for _ in table]
    names = [dataset.classes[dataset.labels[indices[0]]] for indices in table]
    return [name if len(name) <= 34 else f"{name[:18]}…{name[-13:]}" for name in names]


def summarise(dataset: Dataset) -> str:
    """One line on the dataset, below the heading."""
    height, width = dataset.size
    classes = f" of {len(dataset.classes)} classes" if dataset.classes else ""
    return f"{len(dataset)} images{classes}, {height}×{width}. {dataset.provenance}"[:150]


def as_card(image: np.ndarray) -> Image.Image:
    """The image as dark ink on a white card of CELL×CELL pixels; small images are enlarged without blur."""
    share = np.asarray(image, dtype=np.float32)[..., None] / 255
    coloured = (share * np.array(INK) + (1 - share) * np.array(CARD)).astype(np.uint8)
    if image.ndim == 3:  # in colour
        coloured = 255 - np.moveaxis(image, 0, -1)
    height, width = coloured.shape[:2]
    small = max(height, width) <= CELL
    method = Image.Resampling.NEAREST if small else Image.Resampling.BOX
    scale = max(1, CELL // max(height, width)) if small else CELL / max(height, width)
    size = (round(width * scale), round(height * scale))
    card = Image.new("RGB", (CELL, CELL), CARD)
    card.paste(Image.fromarray(coloured).resize(size, method), ((CELL - size[0]) // 2, (CELL - size[1]) // 2))
    return card
