"""The moving picture of the README: one drawing of an unseen character in memory, and what the model imagines.

    python -m benchmarks.readme_picture docs/images/imagine.gif --data DATA

The characters are the first drawings of unseen Omniglot classes, one of each of the five alphabets in turn; the
samples are the first that `imagine` gives for their seed. Nothing is chosen by eye.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tyro
from PIL import Image

import vma
from vma.data import load_dataset

ROWS, COLUMNS = 4, 8
TILE, GAP = 3, 6  # pixels of the picture for a pixel of a drawing; between tiles
INK, PAPER, CARD = (24, 24, 27), (250, 250, 249), (255, 255, 255)
FRAME = (194, 65, 12)  # around the drawing in memory
ALONE, STEP, HOLD = 700, 90, 2600  # milliseconds


def tile(ink: np.ndarray, scale: int) -> np.ndarray:
    """A drawing on its card, as red, green and blue."""
    large = np.kron(ink, np.ones((scale, scale)))[..., None]
    return (large * INK + (1 - large) * CARD).round().astype(np.uint8)


def page(item: np.ndarray, drawn: list[np.ndarray]) -> Image.Image:
    """The drawing in memory on the left, and so many imagined ones on the right, column after column."""
    side = item.shape[-1] * TILE
    large = 2 * side + GAP
    height, width = ROWS * (side + GAP) + GAP, large + 5 * GAP + COLUMNS * (side + GAP)
    picture = np.full((height, width, 3), PAPER, np.uint8)
    top = (height - large) // 2
    picture[top - 3 : top + large + 3, GAP - 3 : GAP + large + 3] = FRAME
    picture[top : top + large, GAP : GAP + large] = CARD
    shown = tile(item, 2 * TILE)
    picture[top + GAP // 2 : top + GAP // 2 + 2 * side, GAP + GAP // 2 : GAP + GAP // 2 + 2 * side] = shown
    for number, ink in enumerate(drawn):
        column, row = divmod(number, ROWS)
        y, x = GAP + row * (side + GAP), large + 5 * GAP + column * (side + GAP)
        picture[y : y + side, x : x + side] = tile(ink, TILE)
    return Image.fromarray(picture)


def frames(data: Path | None) -> Iterator[tuple[Image.Image, int]]:
    """Every frame with its milliseconds."""
    model, unseen = vma.load("omniglot-crisp"), load_dataset("omniglot", "test", data=data)
    labels, alphabets = unseen.class_labels(), {}
    for number, name in enumerate(unseen.classes):
        alphabets.setdefault(name.split("/")[0], number)
    for number in alphabets.values():
        item = unseen.images[np.flatnonzero(labels == number)[0]]
        drawn = model.remember(item).imagine(ROWS * COLUMNS, seed=0).shown.numpy()
        for count in range(0, ROWS * COLUMNS + 1, ROWS):
            yield page(item / 255, list(drawn[:count])), {0: ALONE, len(drawn): HOLD}.get(count, STEP)


def main(out: tyro.conf.Positional[Path], data: Path | None = None) -> None:
    """Write the picture; it begins with all that the first character gave, for whoever shows a still one."""
    found = list(frames(data))
    pictures, times = zip(*found[COLUMNS:], *found[:COLUMNS], strict=True)
    palette = [picture.quantize(16) for picture in pictures]
    palette[0].save(
        out, save_all=True, append_images=palette[1:], duration=list(times), loop=0, optimize=True
    )
    pictures[0].save(out.with_suffix(".png"))


if __name__ == "__main__":
    tyro.cli(main)
