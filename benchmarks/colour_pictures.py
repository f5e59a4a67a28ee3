"""A small set of pictures in colour, for models with grey levels or colours: invented characters in two inks.

    python -m benchmarks.colour_pictures FOLDER
    vma train glyphs-fewshot-fast --data FOLDER --data.name folder --data.folder.colour \
        --data.size 26 --model.likelihood categorical --minutes 5 --updates 10000000

Every class has a character, a colour for its upper part and one for its lower part. Files are class/name.png.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from PIL import Image

from vma.data.glyphs import GlyphOptions, load_glyphs

SIDE = 26


@dataclass(frozen=True)
class Options:
    """What is drawn.

    Attributes:
        folder: Where to.
        classes: Number of classes.
        drawers: Pictures of each.
        seed: Of the colours.
    """

    folder: Annotated[Path, tyro.conf.Positional]
    classes: int = 300
    drawers: int = 20
    seed: int = 0


def main(options: Options) -> None:
    """Write the pictures."""
    glyphs = load_glyphs(
        "train", glyphs=GlyphOptions(classes=options.classes + 1, test_classes=1, drawers=options.drawers)
    )
    inks = np.random.default_rng(options.seed).integers(0, 4, (options.classes, 2, 3)) * 70
    upper = (np.arange(SIDE) < SIDE // 2)[:, None, None]
    for number, (image, label) in enumerate(zip(glyphs.images, glyphs.class_labels(), strict=True)):
        ink = np.where(upper, inks[label][0], inks[label][1])
        picture = np.where(image[:, :, None] > 127, ink, 255).astype(np.uint8)
        folder = options.folder / f"character{label:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / f"{number % options.drawers:02d}.png")


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
