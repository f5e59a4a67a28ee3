"""Omniglot, Lake's original drawings: 50 alphabets, 1623 characters, 20 drawers each."""

import hashlib
import io
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from vma.data.arrays import open_zip, read_entry, sha256_of
from vma.data.cache import cached_arrays
from vma.data.dataset import Dataset
from vma.data.sources import Source, obtain
from vma.errors import InputError, unknown_name

SIDE = 105
TEST_ALPHABETS = ("Sylheti", "Syriac_(Serto)", "Tengwar", "Tibetan", "ULOG")
SPLITS = ("45-5", "background-evaluation")
RULES = {26: "max-pool-26", 28: "subsample-28", 105: "as-drawn"}
ENTRY = re.compile(r"images_(?:background|evaluation)/([^/\\]+/character\d\d)/\d{4}_\d\d\.png")
LITTER = re.compile(r"__MACOSX/.*|(?:.*/)?\.DS_Store|.*/")
URL = "https://raw.githubusercontent.com/brendenlake/omniglot/master/python"
LIMIT = 64 * 2**20
CHUNK = 1024

Ink = UInt8[np.ndarray, "images 105 105"]


@dataclass(frozen=True)
class Archive:
    """One of the two zip files and what it must hold.

    content = sha256 over entries sorted by name, each as name + newline + 105·105 bytes (1 white, 0 ink); it does
    not depend on how the archive is packed.
    """

    source: Source
    classes: int
    images: int
    content: str


BACKGROUND = Archive(
    Source(
        "images_background.zip",
        f"{URL}/images_background.zip",
        9464212,
        sha256="ad41ab679c8b5d90b271ef46be6987cc81211774a695c29dcc5367b2b26ee640",
    ),
    classes=964,
    images=19280,
    content="0e9477e88811f5f8e8837268183d9bc9e9d83034689b06c0e691fefdcd784014",
)
EVALUATION = Archive(
    Source(
        "images_evaluation.zip",
        f"{URL}/images_evaluation.zip",
        6462886,
        sha256="1f61a8f3366785b057fc117d9228e78a16e3d976c8953b2a10fcc74cf0609cee",
    ),
    classes=659,
    images=13180,
    content="ce4cdf5d14d9b6a32fd5c7c53d8b0c6418588b67dbba5fb6e3d5063bc1650c3c",
)


def load_omniglot(
    part: str,
    *,
    split: str = "45-5",
    size: int = 26,
    data: Path | None = None,
    download: bool = True,
) -> Dataset:
    """Binary images of one part: the training or the test classes of `split`.

    Args:
        part: `train` or `test`.
        split: `45-5` (1479 and 144 classes, by alphabet) or `background-evaluation` (964 and 659).
        size: 26 (4×4 max-pooling of ink, the paper's), 28 (subsampled as `omniglot-gmn`) or 105.
        data: Folder with the two zip files; else VMA_DATA, the cache, a download.
        download: Whether a missing file may be downloaded.
    """
    if split not in SPLITS:
        raise unknown_name("split of omniglot", split, SPLITS)
    if size not in RULES:
        raise InputError(f"omniglot has no images of size {size}: choose 26, 28 or 105.")
    archives: tuple[Archive, ...] = (BACKGROUND, EVALUATION)
    if split == "background-evaluation":
        archives = (BACKGROUND,) if part == "train" else (EVALUATION,)
    names, images = read_omniglot(archives, RULES[size], data, download)
    if split == "45-5":
        keep = np.array([(name.split("/")[1] in TEST_ALPHABETS) == (part == "test") for name in names])
        names, images = [name for name, kept in zip(names, keep, strict=True) if kept], images[keep]
    return by_class(names, images, f"{split}/{part}")


def read_omniglot(
    archives: tuple[Archive, ...], rule: str, data: Path | None, download: bool
) -> tuple[list[str], UInt8[np.ndarray, "images side side"]]:
    """Entry names and images of the archives, resized by `rule`, a name in RESIZE."""
    paths = [obtain(archive.source, data, download=download) for archive in archives]
    parts = [resized_archive(path, archive, rule) for path, archive in zip(paths, archives, strict=True)]
    names = [name for part_names, _ in parts for name in part_names]
    return names, np.concatenate([images for _, images in parts])


def resized_archive(
    path: Path, archive: Archive, rule: str
) -> tuple[list[str], UInt8[np.ndarray, "images side side"]]:
    """Names and images of one archive, cached under a hash of the file."""
    key = f"omniglot-1:{archive.content}:{sha256_of(path)}"

    def resized() -> dict[str, np.ndarray]:
        drawn = cached_arrays(key, lambda: decode_archive(path, archive))
        images = np.concatenate([RESIZE[rule](ink) for ink in unpacked(drawn["ink"])])
        return {"names": drawn["names"], "images": images}

    # At full size the cache would hold 340 MB; the cached bits are enough.
    arrays = resized() if rule == "as-drawn" else cached_arrays(f"{key}:{rule}", resized)
    return arrays["names"].tolist(), arrays["images"]


def unpacked(packed: UInt8[np.ndarray, "images bytes"]) -> Iterator[Ink]:
    """The drawings in chunks: 1 ink, 0 white."""
    for start in range(0, len(packed), CHUNK):
        bits = np.unpackbits(packed[start : start + CHUNK], axis=1, count=SIDE * SIDE)
        yield bits.reshape(-1, SIDE, SIDE)


def decode_archive(path: Path, archive: Archive) -> dict[str, np.ndarray]:
    """Sorted entry names, and the ink of each image as packed bits; refused if they are not what `archive` says."""
    with open_zip(path, LIMIT) as zipped:
        names = entry_names(zipped)
        classes = len({name.rsplit("/", 1)[0] for name in names})
        if (classes, len(names)) != (archive.classes, archive.images):
            raise InputError(
                f"{path} holds {len(names)} images of {classes} characters, not {archive.images} of "
                f"{archive.classes}: delete it and get it again."
            )
        digest, packed = hashlib.sha256(), []
        for name in names:
            white = decode_png(read_entry(zipped, name), f"{path}:{name}")
            digest.update(name.encode() + b"\n" + white.tobytes())
            packed.append(np.packbits(white ^ 1))
    if digest.hexdigest() != archive.content:
        raise InputError(f"{path} holds other drawings than Omniglot's: delete it and get it again.")
    return {"names": np.array(names), "ink": np.stack(packed)}


def entry_names(zipped: zipfile.ZipFile) -> list[str]:
    """The images in an archive, sorted; a name that is not an Omniglot image is refused."""
    names = sorted(name for name in zipped.namelist() if not LITTER.fullmatch(name))
    for name in names:
        if not ENTRY.fullmatch(name) or ".." in name.split("/"):
            raise InputError(f"{zipped.filename} holds an unexpected entry {name!r}: it was not read.")
    return names


def decode_png(content: bytes, source: str) -> UInt8[np.ndarray, "105 105"]:
    """Pixels of one drawing: 1 white, 0 ink."""
    try:
        with Image.open(io.BytesIO(content), formats=("PNG",)) as image:
            if image.size != (SIDE, SIDE) or image.mode != "1":
                raise InputError(
                    f"{source} is not a drawing of {SIDE}×{SIDE} pixels of 1 bit: get the file again."
                )
            return np.asarray(image, dtype=np.uint8)
    except (OSError, SyntaxError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{source} is not a readable PNG image: get the file again.") from error


def class_of(name: str) -> str:
    """`Alphabet/characterNN` of an entry name."""
    return "/".join(name.split("/")[1:3])


def by_class(names: list[str], images: UInt8[np.ndarray, "images side side"], split: str) -> Dataset:
    """The images sorted by class, and within a class in the order of their names."""
    classes, labels = np.unique([class_of(name) for name in names], return_inverse=True)
    order = np.argsort(labels, kind="stable")
    return Dataset(
        name="omniglot",
        split=split,
        images=np.ascontiguousarray(images[order]),
        labels=labels[order].astype(np.int64),
        classes=tuple(classes.tolist()),
        provenance=f"Lake et al. 2015, original drawings; {RULES[images.shape[1]]}; ink 255",
    )


def max_pool_26(ink: Ink) -> UInt8[np.ndarray, "images 26 26"]:
    """255 · max over 4×4 blocks of the top-left 104×104 pixels (the paper's 26×26)."""
    blocks = ink[:, :104, :104].reshape(-1, 26, 4, 26, 4)
    rows = blocks[:, :, 0] | blocks[:, :, 1] | blocks[:, :, 2] | blocks[:, :, 3]
    return (rows[..., 0] | rows[..., 1] | rows[..., 2] | rows[..., 3]) * np.uint8(255)


def subsample_28(ink: Ink) -> UInt8[np.ndarray, "images 28 28"]:
    """255 · ink[r_i, r_j] with r_i = floor(105·i / 28), the rule of Generative Matching Networks."""
    rows = np.arange(28) * SIDE // 28
    return ink[:, rows][:, :, rows] * np.uint8(255)


def area_28(ink: Ink) -> UInt8[np.ndarray, "images 28 28"]:
    """255 · (share of ink in each of 28×28 cells of 3.75×3.75 pixels), rounded."""
    cells = area_weights()
    quarters = cells @ ink.astype(np.float32) @ cells.T  # whole numbers up to 225, hence exact
    return ((255 * quarters.astype(np.int32) + 112) // 225).astype(np.uint8)


def area_weights() -> np.ndarray:
    """[28, 105]: how many quarters of pixel j lie in cell i; each row sums to 15."""
    cell = np.repeat(np.arange(28), 15)
    pixel = np.repeat(np.arange(SIDE), 4)
    weights = np.zeros((28, SIDE), dtype=np.float32)
    np.add.at(weights, (cell, pixel), 1.0)
    return weights


def as_drawn(ink: Ink) -> Ink:
    """255 · ink."""
    return ink * np.uint8(255)


RESIZE: dict[str, Callable[[Ink], UInt8[np.ndarray, "images side side"]]] = {
    "max-pool-26": max_pool_26,
    "subsample-28": subsample_28,
    "area-28": area_28,
    "as-drawn": as_drawn,
}
