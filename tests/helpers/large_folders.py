"""Small memories on disk, with keys that no model made."""

from pathlib import Path

import numpy as np

from vma.large import Writer, create
from vma.large.manifest import Manifest

MATCHING, NORM = 8, 3.0


def empty(folder: Path) -> Path:
    shape = {"shape": (4, 4), "matching": MATCHING}
    create(folder, Manifest(model="m" * 64, model_name="nobody", ceiling=NORM, **shape))  # type: ignore[arg-type]
    return folder


def some_rows(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Items, keys of length 1, and s_a."""
    draw = np.random.default_rng(seed)
    keys = draw.normal(size=(count, MATCHING)).astype(np.float32)
    keys /= np.linalg.norm(keys, axis=1, keepdims=True)
    items = draw.integers(0, 256, (count, 4, 4), dtype=np.uint8)
    return items, keys, draw.uniform(-NORM, NORM, count)


def filled(folder: Path, count: int = 30, pieces: int = 3) -> Path:
    empty(folder)
    items, keys, scores = some_rows(count)
    with Writer(folder) as writer:
        for part in np.array_split(np.arange(count), pieces):
            labels = [None if i % 5 == 4 else f"class {i % 5}" for i in part]
            writer.add(items[part], keys[part], scores[part], labels, [f"file {i}" for i in part])
    return folder
