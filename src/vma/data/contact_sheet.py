"""A contact sheet: one row of images for each class, on paper."""

from pathlib import Path

import numpy as np
from jaxtyping import Int
from PIL import Image, ImageDraw, ImageFont

from vma.data.dataset import Dataset
from vma.data.randomness import stream
from vma.errors import InputError

PAPER, CARD, INK, GREY = (250, 249, 246), (255, 255, 255), (28, 28, 36), (120, 118, 112)
CELL, GAP, MARGIN, HEADER = 56, 4, 28, 64


def contact_sheet(dataset: Dataset, *, rows: int = 12, columns: int = 20, seed: int = 0) -> Image.Image:
    """A picture of up to `rows` classes with up to `columns` images each, both drawn at random by `seed`."""
    if rows < 1 or columns < 1:
        raise InputError(f"A contact sheet needs at least one row and one column, not {rows} and {columns}.")
    table = choose_images(dataset, rows, columns, seed)
    names = row_names(dataset, table)
    font, title = load_font(12), load_font(18)
    left = MARGIN + (max(int(font.getlength(name)) for name in names) + 14 if any(names) else 0)
    width = left + max(map(len, table)) * (CELL + GAP) + MARGIN - GAP
    heading, summary = f"{dataset.name}  {dataset.split}", summarise(dataset)
    width = max(width, MARGIN * 2 + int(title.getlength(heading)), MARGIN * 2 + int(font.getlength(summary)))
    sheet = Image.new("RGB", (width, MARGIN + HEADER + len(table) * (CELL + GAP) + MARGIN - GAP), PAPER)
    pen = ImageDraw.Draw(sheet)
    pen.text((MARGIN, MARGIN - 4), heading, INK, title)
    pen.text((MARGIN, MARGIN + 24), summary, GREY, font)
    for row, (name, indices) in enumerate(zip(names, table, strict=True)):
        y = MARGIN + HEADER + row * (CELL + GAP)
        pen.text((MARGIN, y + CELL // 2), name, GREY, font, anchor="lm")
        for column, index in enumerate(indices):
            sheet.paste(as_card(dataset.images[index]), (left + column * (CELL + GAP), y))
    return sheet


def load_font(size: int) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which comes with matplotlib and knows many alphabets."""
    import matplotlib  # here, since it takes longer to import than all the rest

    return ImageFont.truetype(Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans.ttf", size)


def choose_images(dataset: Dataset, rows: int, columns: int, seed: int) -> list[Int[np.ndarray, "row"]]:
    """Indices for each row: a class a row where there are classes, else any images."""
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
