"""Invented characters and their keys by a trained model, in blocks that are kept: what large memories are made of.

    python -m benchmarks.large_items FOLDER 50        # blocks 0 to 49, each 1000 characters by 20 drawers
    python -m benchmarks.large_items results/large-items.json        # what drawing and embedding one costs

A block is a function of its number alone, so that several processes (or machines) may make some each; blocks that
are there are left alone. Drawing and embedding a million takes about three minutes of one free core; some images of
every block are compared with the package's own.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8

from benchmarks.quick_items import drawn_quickly
from vma.data.glyph_render import HAND
from vma.data.glyphs import DICE, draw_classes, random_words
from vma.fewshot import TrainedModel, load
from vma.files import write_atomically

MODEL, SEED, SIZE = "omniglot-crisp", 2026, 26
CHARACTERS, DRAWERS = 1000, 20
BLOCK = CHARACTERS * DRAWERS  # items
AT_ONCE = 100  # characters
ROUNDS = 5  # of timing, after one that is not counted


def drawn(number: int) -> UInt8[np.ndarray, "items height width"]:
    """The images of a block, 0 or 255: drawer by drawer, so that examples of a character lie apart."""
    first = number * CHARACTERS
    with drawn_quickly():
        parts = [characters(first + start, AT_ONCE) for start in range(0, CHARACTERS, AT_ONCE)]
    images = np.concatenate(parts)
    if not np.array_equal(images[:2], characters(first, 2)):
        raise AssertionError(f"block {number} is drawn differently than by the package")
    return images.swapaxes(0, 1).reshape(-1, SIZE, SIZE)


def characters(first: int, count: int) -> UInt8[np.ndarray, "characters drawers height width"]:
    """Some characters by all drawers."""
    images = np.zeros((count, DRAWERS, SIZE, SIZE), np.uint8)
    words = np.stack([random_words(SEED, each, DRAWERS) for each in range(first, first + count)])
    draw_classes(images, words[:, :DICE], words[:, DICE : DICE + DRAWERS * HAND])
    return images


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
        images = drawn(number)
        partial = path.with_suffix(".partial.npz")
        np.savez(partial, bits=np.packbits(images > 0), keys=keys_of(load(MODEL), images))
        partial.replace(path)
    with np.load(path) as kept:
        images = np.unpackbits(kept["bits"], count=BLOCK * SIZE * SIZE).reshape(-1, SIZE, SIZE) * np.uint8(
            255
        )
        return images, kept["keys"]


def varied(folder: Path, base: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of block `base`, and their keys moved by a difference between two drawings of another character.

    k' ∝ k + (k_b − k_c) / √2, where b and c are drawings of one character by two hands: what is added has the
    spread of keys within a class. Stands for block `number` where that was not drawn.
    """
    images, keys = block(folder, base)
    draw = np.random.default_rng((SEED, number))
    by_hand = keys.reshape(DRAWERS, CHARACTERS, -1)
    first, second = draw.permutation(DRAWERS)[:2]
    moves = (by_hand[first] - by_hand[second])[draw.integers(CHARACTERS, size=len(keys))]
    moved = keys + moves / np.sqrt(2, dtype=np.float32)
    return images, moved / np.linalg.norm(moved, axis=1, keepdims=True)


def main(folder: Path, blocks: int, start: int = 0, step: int = 1) -> None:
    """Make every `step`-th of the blocks, from `start` on."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(start, blocks, step):
        if not (folder / f"{number:05}.npz").exists():
            block(folder, number)
            print(f"block {number} of {blocks}", flush=True)


def costs(out: Path) -> None:
    """Microseconds of this thread for an image, by the package and by the loop, and for its key, in turn."""
    model, rows = load(MODEL), []
    for number in range(ROUNDS + 1):
        with drawn_quickly():
            quick_draw, images = timed(characters, number * AT_ONCE, AT_ONCE)
        draw, same = timed(characters, number * AT_ONCE, AT_ONCE)
        assert np.array_equal(images, same)
        images = images.reshape(-1, SIZE, SIZE)
        rows.append((draw, quick_draw, timed(keys_of, model, images)[0]))
    medians = dict(zip(("draw_us", "quick_draw_us", "key_us"), np.median(rows[1:], 0).tolist(), strict=True))
    about = {"command": f"python -m benchmarks.large_items {out}", "model": MODEL, "threads": 1}
    about |= {"rounds": ROUNDS, "items": AT_ONCE * DRAWERS, **medians}
    write_atomically(out, (json.dumps(about, indent=1) + "\n").encode())


def timed(work: Callable[..., np.ndarray], *arguments: Any) -> tuple[float, np.ndarray]:
    """Microseconds of this thread for each item, and the result."""
    begun = time.thread_time()
    found = work(*arguments)
    return 1e6 * (time.thread_time() - begun) / (AT_ONCE * DRAWERS), found


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1].endswith(".json"):
        costs(Path(sys.argv[1]))
    else:
        main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
