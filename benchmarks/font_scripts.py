"""Characters of scripts that Omniglot lacks, rendered from fonts: pictures as people have them, for measuring.

    apt-get install fonts-noto-core fonts-noto-extra fonts-thai-tlwg fonts-lao fonts-khmeros fonts-telu \\
        fonts-telu-extra fonts-taml fonts-lklug-sinhala fonts-freefont-ttf fontconfig
    python -m benchmarks.font_scripts font-scripts

writes `font-scripts/clean/Script-XXXX/rendering.png`, 20 renderings a class, and `font-scripts/photo/…`:
the same on unevenly lit, noisy paper. `made-of.json` there says which faces they are. The preparation was
chosen on the scripts in `DEVELOPMENT` alone.
"""

import json
import subprocess
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import tyro
from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from vma.files import write_atomically

RENDERINGS = 20
LETTERS = {
    "Thai": (0x0E01, 0x0E2E),
    "Tamil": (0x0B85, 0x0BB9),
    "Sinhala": (0x0D85, 0x0DC6),
    "Thaana": (0x0780, 0x07A5),
    "Lao": (0x0E81, 0x0EAE),
    "Khmer": (0x1780, 0x17A2),
    "Telugu": (0x0C05, 0x0C39),
    "Cherokee": (0x13A0, 0x13F4),
}
DEVELOPMENT = ("Thai", "Tamil", "Sinhala", "Thaana")
TEST = ("Lao", "Khmer", "Telugu", "Cherokee")
SIZES = (40, 140)  # pixels of the em
TILT = 3.0  # degrees, one standard deviation


@dataclass(frozen=True)
class Face:
    """A font file: the family is the part of its name before the first hyphen."""

    path: Path
    characters: frozenset[int]

    @property
    def family(self) -> str:
        """The name without weight and slant."""
        return self.path.stem.split("-")[0]


@cache
def installed_faces() -> tuple[Face, ...]:
    """Every scalable font that fontconfig knows, sorted by path."""
    listed = subprocess.run(["fc-list", "--format=%{file}\n"], capture_output=True, text=True, check=True)
    paths = sorted({Path(line) for line in listed.stdout.splitlines() if line.endswith((".ttf", ".otf"))})
    return tuple(Face(path, frozenset(TTFont(path, lazy=True).getBestCmap() or ())) for path in paths)


def letters(script: str) -> list[int]:
    """The code points of a script that are letters by themselves."""
    first, last = LETTERS[script]
    return [c for c in range(first, last + 1) if unicodedata.category(chr(c)) in ("Lo", "Lu")]


def faces_of(script: str) -> list[Face]:
    """Up to 20 faces with 9 of 10 letters: one of each family in turn, and within a family far apart."""
    wanted = letters(script)
    families = defaultdict(list)
    for face in installed_faces():
        if len(face.characters.intersection(wanted)) >= 0.9 * len(wanted):
            families[face.family].append(face)
    order = np.random.default_rng(0)
    queues = [
        [members[i] for i in order.permutation(len(members))] for _, members in sorted(families.items())
    ]
    in_turn = [
        queue[i] for i in range(max(map(len, queues), default=0)) for queue in queues if i < len(queue)
    ]
    return in_turn[:RENDERINGS]


def render(letter: int, face: Face, size: int, tilt: float) -> Image.Image:
    """A letter in black on white paper, turned by `tilt` degrees, with an em of paper around."""
    font = ImageFont.truetype(face.path, size, layout_engine=ImageFont.Layout.BASIC)
    page = Image.new("L", (4 * size, 4 * size), 255)
    ImageDraw.Draw(page).text((2 * size, 2 * size), chr(letter), font=font, fill=0, anchor="mm")
    page = page.rotate(tilt, Image.Resampling.BICUBIC, fillcolor=255)
    box = Image.eval(page, lambda level: 255 - level).getbbox() or (size, size, 3 * size, 3 * size)
    border = size // 3
    return page.crop((box[0] - border, box[1] - border, box[2] + border, box[3] + border))


def photographed(page: Image.Image, seed: int) -> Image.Image:
    """The page in grey pencil on paper that is lit from one side, out of focus and noisy."""
    rng = np.random.default_rng(seed)
    reflected = 1 - rng.uniform(0.4, 0.8) * (1 - np.asarray(page, dtype=np.float64) / 255)
    down, across = np.meshgrid(*(np.linspace(-1, 1, side) for side in reflected.shape), indexing="ij")
    angle, fall = rng.uniform(0, 2 * np.pi), rng.uniform(0.15, 0.4)
    light = rng.uniform(150, 220) * (1 + fall * (np.cos(angle) * across + np.sin(angle) * down))
    noisy = reflected * light + rng.normal(0, 4, reflected.shape)
    blurred = Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))
    return blurred.filter(ImageFilter.GaussianBlur(rng.uniform(0.5, 1.5)))


def renderings(script: str) -> Iterator[tuple[int, int, Face, Image.Image]]:
    """Letter, number, face and picture of every rendering; faces come again where there are fewer than 20."""
    faces = faces_of(script)
    for letter in letters(script):
        having = [face for face in faces if letter in face.characters]
        rng = np.random.default_rng(letter)
        for number in range(RENDERINGS if having else 0):
            size, tilt = int(rng.integers(*SIZES)), float(rng.normal(0, TILT))
            face = having[number % len(having)]
            yield letter, number, face, render(letter, face, size, tilt)


def write_script(script: str, folder: Path) -> list[str]:
    """Both kinds of pictures of a script; the faces that were used are given back."""
    used = {}
    for letter, number, face, page in renderings(script):
        for kind, picture in (("clean", page), ("photo", photographed(page, letter * RENDERINGS + number))):
            path = folder / kind / f"{script}-{letter:04X}" / f"{number:02d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            picture.save(path)
        used[face.path.name] = None
    return list(used)


def main(folder: tyro.conf.Positional[Path]) -> None:
    """Write the pictures of every script to a new folder."""
    if folder.exists():
        sys.exit(f"{folder} exists: give a new folder.")
    made_of = {}
    for script in LETTERS:
        made_of[script] = write_script(script, folder)
        print(f"{script}: {len(made_of[script])} faces")
    write_atomically(folder / "made-of.json", json.dumps(made_of, indent=1).encode())


if __name__ == "__main__":
    tyro.cli(main)
