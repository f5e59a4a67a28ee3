"""Invented characters and their keys by a trained model, in blocks that are kept: what large memories are made of.

    python -m benchmarks.large_items FOLDER 50        # blocks 0 to 49, each 1000 characters by 20 drawers

A block is a function of its number alone, so that several processes (or machines) may make some each; blocks that
are there are left alone. Drawing and embedding a million takes about six minutes of one free core.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8

from vma.data.glyph_render import HAND
from vma.data.glyphs import DICE, draw_classes, random_words
from vma.fewshot import TrainedModel, load

MODEL, SEED, SIZE = "omniglot-crisp", 2026, 26
CHARACTERS, DRAWERS = 1000, 20
BLOCK = CHARACTERS * DRAWERS  # items


def drawn(number: int) -> UInt8[np.ndarray, "items height width"]:
    """The images of a block, 0 or 255: drawer by drawer, so that examples of a character lie apart."""
    images = np.zeros((CHARACTERS, DRAWERS, SIZE, SIZE), np.uint8)
    for first in range(0, CHARACTERS, 100):
        some = range(number * CHARACTERS + first, number * CHARACTERS + first + 100)
        words = np.stack([random_words(SEED, each, DRAWERS) for each in some])
        draw_classes(images[first : first + 100], words[:, :DICE], words[:, DICE : DICE + DRAWERS * HAND])
    return images.swapaxes(0, 1).reshape(-1, SIZE, SIZE)


@torch.no_grad()
def keys_of(model: TrainedModel, images: np.ndarray) -> Float[np.ndarray, "items matching"]:
    """k_a of every image."""
    addressing = model.model.addressing
    parts = torch.from_numpy(images).split(64)
    return torch.cat(
        [addressing.similarity.keys(addressing.key(part.float() / 255)) for part in parts]
    ).numpy()


def block(folder: Path, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Images (as bits) and keys of a block, made if they are not there."""
    path = folder / f"{number:05}.npz"
    if not path.exists():
        torch.set_num_threads(1)
        images = drawn(number)
        partial = path.with_suffix(".partial.npz")
        np.savez(partial, bits=np.packbits(images > 0), keys=keys_of(load(MODEL), images))
        partial.replace(path)
    with np.load(path) as kept:
        images = np.unpackbits(kept["bits"], count=BLOCK * SIZE * SIZE).reshape(-1, SIZE, SIZE) * np.uint8(
            255
        )
        return images, kept["keys"]


def main(folder: Path, blocks: int, start: int = 0, step: int = 1) -> None:
    """Make every `step`-th of the blocks, from `start` on."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(start, blocks, step):
        if not (folder / f"{number:05}.npz").exists():
            block(folder, number)
            print(f"block {number} of {blocks}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
