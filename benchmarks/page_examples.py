"""The examples of the page: one character of each of five scripts that no model in the box has seen.

    python -m benchmarks.page_examples

writes them from Omniglot's archives (MIT licence, © 2015 Brenden Lake) into `src/vma/serve/examples`.
"""

import io
import zipfile
from pathlib import Path

from PIL import Image

from vma.data.omniglot import BACKGROUND, EVALUATION
from vma.data.sources import obtain

FOLDER = Path(__file__).parent.parent / "src/vma/serve/examples"
CHARACTERS = {  # of the test alphabets of the 45-5 split
    "Sylheti": "Sylheti/character12",
    "Syriac": "Syriac_(Serto)/character18",
    "Tengwar": "Tengwar/character20",
    "Tibetan": "Tibetan/character01",
    "Ulog": "ULOG/character20",
}
DRAWERS = (1, 7, 14)


def main() -> None:
    """Copy the drawings, one bit a pixel."""
    for archive, part in ((BACKGROUND, "background"), (EVALUATION, "evaluation")):
        with zipfile.ZipFile(obtain(archive.source)) as packed:
            for name, character in CHARACTERS.items():
                copy(packed, f"images_{part}/{character}/", name)


def copy(packed: zipfile.ZipFile, prefix: str, name: str) -> None:
    """The drawings of one character, if they are in this archive."""
    for entry in packed.namelist():
        drawer = entry.removesuffix(".png")[-2:]
        if entry.startswith(prefix) and entry.endswith(".png") and int(drawer) in DRAWERS:
            (FOLDER / name).mkdir(parents=True, exist_ok=True)
            image = Image.open(io.BytesIO(packed.read(entry))).convert("1")
            image.save(FOLDER / name / f"{DRAWERS.index(int(drawer)) + 1}.png", optimize=True)


if __name__ == "__main__":
    main()
