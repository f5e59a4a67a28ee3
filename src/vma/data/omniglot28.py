"""Omniglot at 28×28 in grey: Burda's `chardata.mat`, or a stand-in made from the original drawings."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int, UInt8

from vma.data.arrays import read_mat, sha256_of
from vma.data.cache import cached_arrays
from vma.data.dataset import Dataset
from vma.data.omniglot import BACKGROUND, EVALUATION, class_of, read_omniglot
from vma.data.randomness import permutation
from vma.data.sources import Source, obtain
from vma.errors import InputError

CHARDATA = Source(
    "chardata.mat",
    "https://raw.githubusercontent.com/yburda/iwae/master/datasets/OMNIGLOT/chardata.mat",
    None,
    git_blob="016a3536ffe5e1d38e42563a18d7a78bfaf643ec",
)
COUNT = {"train": 24345, "test": 8070}
VALIDATION = 1345
MOST_BLANK = 0.1  # of the images: not so many drawings are empty
DRAWERS, TRAIN_DRAWERS = 20, 15


def load_omniglot28(part: str, *, data: Path | None = None, download: bool = True) -> Dataset:
    """Grey images of `chardata.mat`: 23 000 `train` and 1345 `valid` of its 24 345, and 8070 `test`."""
    path = obtain(CHARDATA, data, download=download)
    arrays = cached_arrays(f"chardata-1:{sha256_of(path)}", lambda: read_chardata(path))
    key = "test" if part == "test" else "train"
    whole = Dataset(
        name="omniglot28",
        split=part,
        images=arrays[f"{key}_images"],
        labels=None,
        classes=(),
        provenance="Burda, Grosse, Salakhutdinov 2016, chardata.mat; grey, ink 255",
    )
    if {"train_labels", "test_labels"} <= arrays.keys():
        characters = np.unique(np.concatenate([arrays["train_labels"], arrays["test_labels"]]))
        names = tuple(f"alphabet{c // 100:02d}/character{c % 100:02d}" for c in characters.tolist())
        whole = replace(whole, labels=np.searchsorted(characters, arrays[f"{key}_labels"]), classes=names)
    return whole if part == "test" else split_validation(whole, part)


def split_validation(train: Dataset, part: str) -> Dataset:
    """`valid`: 1345 images of the training set, chosen once for all; `train`: the others, in order."""
    order = permutation(len(train), seed=VALIDATION)
    chosen = order[:VALIDATION] if part == "valid" else order[VALIDATION:]
    return train.subset_images(np.sort(chosen), part)


def read_chardata(path: Path) -> dict[str, np.ndarray]:
    """`{train,test}_images`, and `{train,test}_labels` = 100 · alphabet + character if the file has them."""
    matrices = read_mat(path)
    arrays = {}
    for part, prefix in (("train", ""), ("test", "test")):
        pixels, count = matrices.get(f"{prefix}data"), COUNT[part]
        if pixels is None or pixels.shape != (784, count):
            found = "nothing" if pixels is None else pixels.shape
            raise InputError(f"{path} has {found} as {prefix}data, not (784, {count}): get the file again.")
        arrays[f"{part}_images"] = columns_to_images(pixels, path)
        alphabet, character = matrices.get(f"{prefix}target"), matrices.get(f"{prefix}targetchar")
        if alphabet is not None and character is not None and alphabet.shape[1] == character.size == count:
            arrays[f"{part}_labels"] = 100 * (alphabet.argmax(0) + 1) + character.ravel().astype(np.int64)
    return arrays


def columns_to_images(
    columns: Float[np.ndarray, "784 images"] | Int[np.ndarray, "784 images"], path: Path
) -> UInt8[np.ndarray, "images 28 28"]:
    """images[n, i, j] = 255 · columns[28·j + i, n]: the file stores each image column by column."""
    if not (columns.min() >= 0 and columns.max() <= 1):
        raise InputError(f"{path} holds pixels outside [0, 1]: delete it and get it again.")
    if (blank := float((columns.max(0) == 0).mean())) > MOST_BLANK:
        raise InputError(f"{path} holds images of which {blank:.0%} have no ink: delete it and get it again.")
    images = columns.T.reshape(-1, 28, 28).transpose(0, 2, 1)
    return np.ascontiguousarray(np.rint(images * 255.0).astype(np.uint8))


def load_stand_in(part: str, *, data: Path | None = None, download: bool = True) -> Dataset:
    """A stand-in for `omniglot28`: drawings area-resized to grey 28×28, of each character 15 `train` and 5 `test`.

    It has 23 000 / 1345 / 8115 images. The 15 training drawers are drawn at random for each class. Neither this
    choice nor the scaling is Burda's, so numbers on it are not comparable with published ones.
    """
    names, images = read_omniglot((BACKGROUND, EVALUATION), "area-28", data, download)
    order = np.argsort([class_of(name) for name in names], kind="stable").reshape(-1, DRAWERS)
    shuffled = np.stack([row[permutation(DRAWERS, seed=28, index=c)] for c, row in enumerate(order)])
    chosen = np.sort(shuffled[:, TRAIN_DRAWERS:] if part == "test" else shuffled[:, :TRAIN_DRAWERS], axis=1)
    whole = Dataset(
        name="omniglot28-stand-in",
        split=part,
        images=np.ascontiguousarray(images[chosen.ravel()]),
        labels=np.repeat(np.arange(len(chosen)), chosen.shape[1]),
        classes=tuple(class_of(names[row[0]]) for row in order),
        provenance="Stand-in for chardata.mat: Lake's drawings, area-resized to 28×28; grey, ink 255",
    )
    return whole if part == "test" else split_validation(whole, part)
