"""MNIST from its IDX files."""

import hashlib
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from vma.data.arrays import read_maybe_gzip
from vma.data.dataset import Dataset
from vma.data.sources import Source, obtain
from vma.errors import InputError

DIGITS = tuple("0123456789")
URL = "https://ossci-datasets.s3.amazonaws.com/mnist"


def _idx(name: str, size: int, sha256: str) -> Source:
    return Source(f"{name}.gz", f"{URL}/{name}.gz", size, sha256=sha256, aliases=(name,))


IDX = {
    "train": (
        _idx(
            "train-images-idx3-ubyte",
            9912422,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        _idx(
            "train-labels-idx1-ubyte",
            28881,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
    ),
    "test": (
        _idx(
            "t10k-images-idx3-ubyte",
            1648877,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        _idx(
            "t10k-labels-idx1-ubyte", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
        ),
    ),
}
COUNT = {"train": 60000, "test": 10000}
CONTENT = {  # sha256 of the unpacked files: images, labels
    "train": (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    "test": (
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
}


def load_mnist(part: str, *, data: Path | None = None, download: bool = True) -> Dataset:
    """The 60 000 (`train`) or 10 000 (`test`) grey digits with their labels."""
    images_path, labels_path = (obtain(source, data, download=download) for source in IDX[part])
    count = COUNT[part]
    images = read_idx(images_path, (count, 28, 28), CONTENT[part][0])
    labels = read_idx(labels_path, (count,), CONTENT[part][1])
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
