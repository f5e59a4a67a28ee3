"""Omniglot at 28×28 as Generative Matching Networks use it: binary, trained on the background alphabets."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vma.data.arrays import read_npz
from vma.data.dataset import Dataset
from vma.data.sources import Source, obtain
from vma.errors import InputError

URL = "https://raw.githubusercontent.com/sbos/gmn/master/data"
KEY = re.compile(r"images_(?:background|evaluation)/([^/\\]+/character\d\d)")


@dataclass(frozen=True)
class GmnFile:
    """A file and what it must hold: content = sha256 over sorted keys, each as key + newline + array bytes."""

    source: Source
    classes: int
    content: str


TRAIN = GmnFile(
    Source(
        "gmn_train.npz",
        f"{URL}/train_small.npz",
        903342,
        sha256="136ac9970475ee96cb03275a4299233ef7d0f023380d2eff4ca73b31cc2f97da",
        aliases=("train_small.npz",),
    ),
    classes=964,
    content="058b086ee12c8631e992bcc7bc7ea07851b255fc68ef4074cbb71e1a0f6432c7",
)
TEST = GmnFile(
    Source(
        "gmn_test.npz",
        f"{URL}/test_small.npz",
        642229,
        sha256="5ac797844c90af132a423614c198f7b83ef8fad7cf8d32d6dc4f24483d317ac3",
        aliases=("test_small.npz",),
    ),
    classes=659,
    content="95e06a89f44d3d8f004ddf3b3d7a47e412b238354502a6aa07491e45b831da35",
)
FILES = {"train": TRAIN, "test": TEST}


def load_gmn(part: str, *, data: Path | None = None, download: bool = True) -> Dataset:
    """Binary images of 964 (`train`) or 659 (`test`) characters, 20 each; ink = pixel < 255."""
    file = FILES[part]
    classes = read_gmn(obtain(file.source, data, download=download), file)
    stack = np.stack([classes[key] for key in sorted(classes)])
    return Dataset(
        name="omniglot-gmn",
        split=f"background-evaluation/{part}",
        images=np.where(stack < 255, np.uint8(255), np.uint8(0)).reshape(-1, 28, 28),
        labels=np.repeat(np.arange(len(classes)), stack.shape[1]),
        classes=tuple(key.split("/", 1)[1] for key in sorted(classes)),
        provenance="Bartunov and Vetrov's 28×28 Omniglot (sbos/gmn); ink = pixel < 255; ink 255",
    )


def read_gmn(path: Path, file: GmnFile) -> dict[str, np.ndarray]:
    """The arrays [20, 784] of each class; refused if they are not what `file` says."""
    classes = read_npz(path)
    for key, images in classes.items():
        if not KEY.fullmatch(key) or ".." in key:
            raise InputError(f"{path} holds an unexpected array {key!r}: it was not read.")
        if images.shape != (20, 784) or images.dtype != np.uint8:
            raise InputError(
                f"{path}:{key} is {images.dtype} {images.shape}, not uint8 (20, 784): get the file again."
            )
    if len(classes) != file.classes:
        raise InputError(
            f"{path} holds {len(classes)} classes, not {file.classes}: delete it and get it again."
        )
    digest = hashlib.sha256()
    for key in sorted(classes):
        digest.update(key.encode() + b"\n" + classes[key].tobytes())
    if digest.hexdigest() != file.content:
        raise InputError(f"{path} holds other images than those of sbos/gmn: delete it and get it again.")
    return classes
