"""The figure of docs/pictures.md: what each step makes of three pictures.

python -m benchmarks.font_scripts FOLDER
python -m benchmarks.picture_steps FOLDER docs/images/pictures.png
"""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from vma.data.ink import DRAWN, paths, redrawn, strokes_of, with_pen
from vma.data.picture import FolderOptions, lightness, on_uneven_paper
from vma.files import write_atomically

SHOWN = ("photo/Thai-0E01/07.png", "clean/Tamil-0B95/15.png", "clean/Sinhala-0D9A/01.png")
TITLES = (
    "as given",
    "ink above its paper",
    "strokes, cropped",
    "middle lines",
    "one pen",
    "pooled: what is seen",
)
SIZE = (26, 26)


def steps(picture: Image.Image) -> Iterator[np.ndarray]:
    """What is shown of a picture, dark where there is ink."""
    options = FolderOptions()
    light = lightness(picture, options.invert)
    ink = on_uneven_paper(light, options)
    strokes = strokes_of(ink, options.margin)
    path = paths(strokes, (DRAWN, DRAWN), options.margin)
    yield 255 - light
    yield from (ink, strokes, path, with_pen(path), redrawn(ink, SIZE, options.margin))


def main(folder: Path, out: Path) -> None:
    """Draw the figure."""
    figure = Figure(figsize=(2 * len(TITLES), 2.1 * len(SHOWN)), layout="constrained")
    axes = figure.subplots(len(SHOWN), len(TITLES))
    for row, name in zip(axes, SHOWN, strict=True):
        for axis, image in zip(row, steps(Image.open(folder / name)), strict=True):
            axis.imshow(image, cmap="gray_r", interpolation="nearest")
            axis.set(xticks=[], yticks=[])
    for axis, title in zip(axes[0], TITLES, strict=True):
        axis.set_title(title, fontsize=11)
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=80)
    write_atomically(out, page.getvalue())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
