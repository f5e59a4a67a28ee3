"""Small files in the formats of the real datasets, right and wrong."""

import gzip
import hashlib
import io
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from vma.data.dataset import Dataset
from vma.data.omniglot import Archive
from vma.data.sources import Source

NOWHERE = "http://127.0.0.1:9/nothing-listens-here"


def make_dataset(sizes: list[int], side: int = 2, seed: int = 0) -> Dataset:
    """Random grey images; class c has sizes[c] of them, shuffled among the others."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    images = rng.integers(0, 256, (len(labels), side, side), dtype=np.uint8)
    return Dataset(
        "made", "train", images, labels, tuple(f"class{c}" for c in range(len(sizes))), "made for a test"
    )


def png_bytes(image: np.ndarray | Image.Image) -> bytes:
    buffer = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(buffer, format="PNG")
    return buffer.getvalue()


def drawings(classes: int = 3, drawers: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Entry name -> [105, 105] bool, True white."""
    rng = np.random.default_rng(seed)
    return {
        f"images_background/Made/character{c + 1:02d}/{c:04d}_{d + 1:02d}.png": rng.random((105, 105)) > 0.1
        for c in range(classes)
        for d in range(drawers)
    }


def write_zip(path: Path, entries: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def write_omniglot(path: Path, images: dict[str, np.ndarray]) -> Path:
    return write_zip(path, {name: png_bytes(white) for name, white in images.items()})


def archive_of(images: dict[str, np.ndarray]) -> Archive:
    """What an archive of these drawings must hold, by the rule of the data's README."""
    digest = hashlib.sha256()
    for name in sorted(images):
        digest.update(name.encode() + b"\n" + images[name].astype(np.uint8).tobytes())
    classes = len({name.rsplit("/", 1)[0] for name in images})
    return Archive(Source("made.zip", NOWHERE, 0), classes, len(images), digest.hexdigest())


def idx_bytes(values: np.ndarray) -> bytes:
    header = b"\0\0\x08" + bytes([values.ndim]) + np.array(values.shape, dtype=">u4").tobytes()
    return header + values.astype(np.uint8).tobytes()


def amat_bytes(pixels: np.ndarray) -> bytes:
    return "".join(" ".join(map(str, row)) + "\n" for row in pixels.tolist()).encode()


def write_gzip(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content, mtime=0))
    return path


def cut(path: Path, share: float = 0.6) -> Path:
    """The same file with its end missing."""
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    return path


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
