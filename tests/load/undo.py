"""What undo costs: memory that a page's store has taken after many changes, by how many steps it keeps."""

import json
import multiprocessing
import tempfile
from collections import deque
from pathlib import Path

import numpy as np
import torch

from tests.fuzz.outside_targets import served_model
from vma.files import write_atomically
from vma.serve import store
from vma.serve.store import Contents

CHANGES = 456
WAYS = {"a hundred steps": (100, 10**9), "one step": (1, 10**9), "as it is": (store.STEPS, store.PAST_CARDS)}


def in_use() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def grown(way: str) -> float:
    """Megabytes after so many changes, beyond those before."""
    steps, store.PAST_CARDS = WAYS[way]
    torch.set_num_threads(1)
    picture = np.full((40, 40), 255, np.uint8)
    picture[10:30, 18:22] = 0
    with tempfile.TemporaryDirectory() as folder:
        kept = store.Store(served_model(), Path(folder) / "memory.safetensors")
        kept.past, before = deque(maxlen=steps), in_use()
        for _ in range(CHANGES):
            kept.change("remember", lambda contents: with_one_more(kept, contents, picture))
        return round((in_use() - before) / 2**20, 1)


def with_one_more(kept: store.Store, contents: Contents, picture: np.ndarray) -> Contents:
    """The contents with one more card."""
    if contents.images is None:
        return Contents.of(kept.model.remember([picture], ["x"]))
    return Contents.of(contents.images.add([picture], ["x"]))


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        megabytes = {way: pool.apply(grown, (way,)) for way in WAYS}
    found = {"command": "python -m tests.load.undo", "changes": CHANGES, "megabytes": megabytes}
    write_atomically(Path("results/undo-memory.json"), json.dumps(found, indent=1).encode())
    print(found)
