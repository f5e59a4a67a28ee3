"""MNIST: the grey digits of the IDX files, and Larochelle and Murray's fixed binarization of them."""

import hashlib
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt8

from vma.data.arrays import read_maybe_gzip, read_npz
from vma.data.dataset import Dataset
from vma.data.sources import Source, locate, obtain
from vma.errors import InputError

DIGITS = tuple("0123456789")
IDX_URL = "https://ossci-datasets.s3.amazonaws.com/mnist"
AMAT_URL = "http://www.cs.toronto.edu/~larocheh/public/datasets/binarized_mnist"


def idx_source(name: str, size: int, sha256: str) -> Source:
    """An IDX file, compressed or not."""
    return Source(f"{name}.gz", f"{IDX_URL}/{name}.gz", size, sha256=sha256, aliases=(name,))


def amat_source(part: str, size: int, sha256: str) -> Source:
    """A text file of binarized digits, compressed or not."""
    name = f"binarized_mnist_{part}.amat"
    return Source(name, f"{AMAT_URL}/{name}", size, sha256=sha256, aliases=(f"{name}.gz",))


IDX = {  # images, labels
    "train": (
        idx_source(
            "train-images-idx3-ubyte",
            9912422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        idx_source(
            "train-labels-idx1-ubyte",
            28881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
    ),
    "test": (
        idx_source(
            "t10k-images-idx3-ubyte",
            1648877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        idx_source(
            "t10k-labels-idx1-ubyte",
            4542,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
}
IDX_COUNT = {"train": 60000, "test": 10000}
IDX_CONTENT = {  # sha256 of the unpacked files: images, labels
    "train": (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    "test": (
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
}
AMAT = {
    "train": amat_source(
        "train", 78400000, "ad693b29f94c14277b095f5238ddefbbdaaae0939789dd2f4f0205278cee3e4d"
    ),
    "valid": amat_source(
        "valid", 15680000, "1de3d397c40fe8eeb33dafd4099a1f665ec01e96d9be234aaeeac8a34930e2e2"
    ),
    "test": amat_source("test", 15680000, "e6687bfea3f820c174f33b7865140b2a2dd2930ef786f35d45795fc193b5ab2c"),
}
NPZ = Source("binarized_mnist.npz", "", 2997490)
BINARY_COUNT = {"train": 50000, "valid": 10000, "test": 10000}
BINARY_CONTENT = {  # sha256 of the pixels, one byte 0 or 1 each
    "train": "43490d4d6ac9002727af4426d8748609fdb7e4094fa65ad8d681ea60082a7a5a",
    "valid": "069b4f0beb389b776478c3e872b4df71c95ac4be64d7cbe6d32e24ebac8e6d5e",
    "test": "ca0294c3b8d984c7a1dc891015a8eea6f37bae59a34e35ea0fc8c47110a8dd86",
}


def load_mnist(part: str, *, data: Path | None = None, download: bool = True) -> Dataset:
    """The 60 000 (`train`) or 10 000 (`test`) grey digits with their labels."""
    images_path, labels_path = (obtain(source, data, download=download) for source in IDX[part])
    count = IDX_COUNT[part]
    images = read_idx(images_path, (count, 28, 28), IDX_CONTENT[part][0])
    labels = read_idx(labels_path, (count,), IDX_CONTENT[part][1])
    return Dataset("mnist", part, images, labels.astype(np.int64), DIGITS, "LeCun, Cortes, Burges; IDX files")


def read_idx(path: Path, shape: tuple[int, ...], content: str) -> UInt8[np.ndarray, "..."]:
    """The array of an IDX file: the bytes 0 0 8 ndim, sizes (4 bytes each, big-endian), then the values."""
    size = 4 + 4 * len(shape) + int(np.prod(shape))
    raw = read_maybe_gzip(path, 2 * size)
    header = b"\0\0\x08" + bytes([len(shape)]) + np.array(shape, dtype=">u4").tobytes()
    if raw[: len(header)] != header or len(raw) != size:
        raise InputError(
            f"{path} is not an IDX file of {'×'.join(map(str, shape))} bytes: delete it and get it again."
        )
    if hashlib.sha256(raw).hexdigest() != content:
        raise InputError(f"{path} holds other values than MNIST's: delete it and get it again.")
    return np.frombuffer(raw, np.uint8, offset=len(header)).reshape(shape).copy()


def load_binarized_mnist(part: str, *, data: Path | None = None, download: bool = True) -> Dataset:
    """50 000 / 10 000 / 10 000 binary digits; labels only where they come from `binarized_mnist.npz`."""
    path = locate(NPZ, data)
    if path is not None:
        pixels, labels = read_binarized_npz(path, part)
    else:
        path, labels = obtain(AMAT[part], data, download=download), None
        pixels = read_amat(path, BINARY_COUNT[part], BINARY_CONTENT[part])
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
    check_pixels(path, pixels, BINARY_COUNT[part], BINARY_CONTENT[part])
    return pixels, None if labels is None else as_digits(path, labels, len(pixels))


def as_digits(path: Path, labels: np.ndarray, count: int) -> Int[np.ndarray, "images"]:
    """The labels, checked to be one digit from 0 to 9 for each image."""
    whole = labels.shape == (count,) and labels.dtype.kind in "iu"
    if not (whole and labels.min() >= 0 and labels.max() <= 9):
        raise InputError(f"{path} has labels that are not {count} digits 0 to 9: get the file again.")
    return labels.astype(np.int64)


def read_amat(path: Path, count: int, content: str) -> UInt8[np.ndarray, "images 784"]:
    """Pixels 0/1 of a text file with one image per line: 784 values 0 or 1, separated by single spaces."""
    text = np.frombuffer(read_maybe_gzip(path, 2 * count * 1568), np.uint8)
    if len(text) != count * 1568:
        raise InputError(
            f"{path} has {len(text)} characters, not {count} lines of 784 values: get the file again."
        )
    lines = text.reshape(count, 1568)
    pixels, gaps = lines[:, ::2] - ord("0"), lines[:, 1::2]
    if (gaps[:, :-1] != ord(" ")).any() or (gaps[:, -1] != ord("\n")).any():
        raise InputError(f"{path} is not lines of 784 values separated by one space: get the file again.")
    check_pixels(path, pixels, count, content)
    return pixels


def check_pixels(path: Path, pixels: np.ndarray, count: int, content: str) -> None:
    """Refuse pixels that are not those of the fixed binarization."""
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
