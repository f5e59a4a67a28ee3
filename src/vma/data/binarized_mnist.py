"""MNIST under the fixed binarization of Larochelle and Murray."""

import hashlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from vma.data.arrays import read_maybe_gzip, read_npz
from vma.data.dataset import Dataset
from vma.data.mnist import DIGITS
from vma.data.sources import Source, locate, obtain
from vma.errors import InputError

URL = "http://www.cs.toronto.edu/~larocheh/public/datasets/binarized_mnist"


def _amat(part: str, size: int, sha256: str) -> Source:
    name = f"binarized_mnist_{part}.amat"
    return Source(name, f"{URL}/{name}", size, sha256=sha256, aliases=(f"{name}.gz",))


AMAT = {
    "train": _amat("train", 78400000, "ad693b29f94c14277b095f5238ddefbbdaaae0939789dd2f4f0205278cee3e4d"),
    "valid": _amat("valid", 15680000, "1de3d397c40fe8eeb33dafd4099a1f665ec01e96d9be234aaeeac8a34930e2e2"),
    "test": _amat("test", 15680000, "e6687bfea3f820c174f33b7865140b2a2dd2930ef786f35d45795fc193b5ab2c"),
}
COUNT = {"train": 50000, "valid": 10000, "test": 10000}
CONTENT = {  # sha256 of the pixels, one byte 0 or 1 each
    "train": "43490d4d6ac9002727af4426d8748609fdb7e4094fa65ad8d681ea60082a7a5a",
    "valid": "069b4f0beb389b776478c3e872b4df71c95ac4be64d7cbe6d32e24ebac8e6d5e",
    "test": "ca0294c3b8d984c7a1dc891015a8eea6f37bae59a34e35ea0fc8c47110a8dd86",
}
NPZ = Source("binarized_mnist.npz", "", 2997490)


def load_binarized_mnist(part: str, *, data: Path | None = None, download: bool = True) -> Dataset:
    """50 000 / 10 000 / 10 000 binary digits; labels only where they come from `binarized_mnist.npz`."""
    path = locate(NPZ, data)
    if path is not None:
        pixels, labels = read_binarized_npz(path, part)
    else:
        path, labels = obtain(AMAT[part], data, download=download), None
        pixels = read_amat(path, COUNT[part], CONTENT[part])
    return Dataset(
        name="binarized-mnist",
        split=part,
        images=pixels.reshape(-1, 28, 28) * np.uint8(255),
        labels=labels,
        classes=() if labels is None else DIGITS,
        provenance=f"Larochelle and Murray's fixed binarization, from {path.name}",
    )


def read_binarized_npz(path: Path, part: str) -> tuple[UInt8[np.ndarray, "images 784"], np.ndarray | None]:
    """Pixels 0/1 and labels (None where the file has none) of one part of the `.npz`."""
    arrays = read_npz(path)
    if f"{part}_data" not in arrays:
        raise InputError(f"{path} has no array {part}_data: delete it and get it again.")
    pixels, labels = arrays[f"{part}_data"], arrays.get(f"{part}_labels")
    _check_pixels(path, pixels, COUNT[part], CONTENT[part])
    if labels is None:
        return pixels, None
    if (
        labels.shape != (len(pixels),)
        or labels.dtype.kind not in "iu"
        or labels.min() < 0
        or labels.max() > 9
    ):
        raise InputError(f"{path} has labels that are not {len(pixels)} digits 0 to 9: get the file again.")
    return pixels, labels.astype(np.int64)


def read_amat(path: Path, count: int, content: str) -> UInt8[np.ndarray, "images 784"]:
    """Pixels 0/1 of a text file with one image a line, 784 values 0 or 1 separated by one space."""
    text = np.frombuffer(read_maybe_gzip(path, 2 * count * 1568), np.uint8)
    if len(text) != count * 1568:
        raise InputError(
            f"{path} has {len(text)} characters, not {count} lines of 784 values: get the file again."
        )
    lines = text.reshape(count, 1568)
    pixels, gaps = lines[:, ::2] - ord("0"), lines[:, 1::2]
    if (gaps[:, :-1] != ord(" ")).any() or (gaps[:, -1] != ord("\n")).any():
        raise InputError(f"{path} is not lines of 784 values separated by one space: get the file again.")
    _check_pixels(path, pixels, count, content)
    return pixels


def _check_pixels(path: Path, pixels: np.ndarray, count: int, content: str) -> None:
    if pixels.shape != (count, 784) or pixels.dtype != np.uint8:
        raise InputError(
            f"{path} holds {pixels.shape} {pixels.dtype}, not ({count}, 784) uint8: get the file again."
        )
    if pixels.max() > 1:
        raise InputError(f"{path} holds values other than 0 and 1: delete it and get it again.")
    if hashlib.sha256(pixels.tobytes()).hexdigest() != content:
        raise InputError(
            f"{path} holds other images than the fixed binarization: delete it and get it again."
        )
