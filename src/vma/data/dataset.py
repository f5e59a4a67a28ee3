"""The one object that every loader returns, and how to make it from arrays."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8

from vma.data.randomness import binarize, permutation, stream
from vma.errors import InputError, TooFewImages, unknown_name


@dataclass(frozen=True)
class Dataset:
    """Images with their classes: `images[i]` shows class `classes[labels[i]]`.

    >>> glyphs = vma.data.load_dataset("glyphs", "test")
    >>> len(glyphs), len(glyphs.classes), glyphs.images.shape
    (2000, 100, (2000, 26, 26))
    >>> glyphs.subset_classes(glyphs.classes[:3]).class_counts()
    array([20, 20, 20])

    Attributes:
        name: Name of the dataset, e.g. `omniglot`.
        split: Which split, and which part of it, e.g. `45-5/test`.
        images: All images in one contiguous array; 0 is background, 255 full ink.
        labels: Class of each image, or None where the data has none.
        classes: Names of the classes, in the order of the labels.
        provenance: Where the images come from and what was done to them.
    """

    name: str
    split: str
    images: UInt8[np.ndarray, "images *image"]
    labels: Int[np.ndarray, "images"] | None
    classes: tuple[str, ...]
    provenance: str

    def __len__(self) -> int:
        return len(self.images)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of an image."""
        return self.images.shape[-2], self.images.shape[-1]

    @property
    def channels(self) -> int:
        """1, or 3 in colour, where images are [3, height, width]."""
        return self.images.shape[1] if self.images.ndim == 4 else 1

    @property
    def is_binary(self) -> bool:
        """Whether every pixel is 0 or 255."""
        return bool(np.isin(self.images, (0, 255)).all())

    def class_labels(self) -> Int[np.ndarray, "images"]:
        """The labels; an error if this dataset has none."""
        if self.labels is None:
            raise InputError(
                f"Dataset {self.name} ({self.split}) has no labels: use one with classes, e.g. omniglot."
            )
        return self.labels

    def class_counts(self) -> Int[np.ndarray, "classes"]:
        """Number of images of each class."""
        return np.bincount(self.class_labels(), minlength=len(self.classes))

    def content_hash(self) -> str:
        """A hash of images, labels and class names: datasets with equal hashes give equal training."""
        digest = hashlib.sha256(repr((self.images.shape, self.classes)).encode())
        digest.update(self.images.tobytes())
        digest.update(b"" if self.labels is None else self.labels.astype("<i8").tobytes())
        return digest.hexdigest()[:16]

    def binarized(self, seed: int = 0) -> "Dataset":
        """One fixed stochastic binarization: each pixel 255 with probability pixel / 255, else 0."""
        how = f"{self.provenance}; binarized once by seed {seed}"
        return replace(self, images=binarize(self.images, stream(seed)), provenance=how)

    def subset_images(self, indices: Int[np.ndarray, "subset"], split: str) -> "Dataset":
        """The images at `indices`, in that order, with the same classes; `split` is the result's `split`."""
        labels = None if self.labels is None else self.labels[indices]
        return replace(self, split=split, images=np.ascontiguousarray(self.images[indices]), labels=labels)

    def subset_classes(self, classes: Sequence[str], split: str | None = None) -> "Dataset":
        """All images of `classes`, relabelled 0, 1, … in the order given."""
        if missing := [name for name in classes if name not in self.classes]:
            raise unknown_name("class", missing[0], self.classes)
        if len(set(classes)) != len(classes):
            raise InputError("A class is named twice: name each class once.")
        new_label = np.full(len(self.classes), -1, dtype=np.int64)
        new_label[[self.classes.index(name) for name in classes]] = np.arange(len(classes))
        labels = new_label[self.class_labels()]
        chosen = self.subset_images(np.flatnonzero(labels >= 0), split or self.split)
        return replace(chosen, labels=labels[labels >= 0], classes=tuple(classes))

    def hold_out_classes(self, count: int, seed: int = 0) -> tuple["Dataset", "Dataset"]:
        """(kept, held out): two datasets without common classes, `count` classes held out at random by `seed`."""
        if not 0 < count < len(self.classes):
            raise TooFewImages(
                f"Cannot hold out {count} of {len(self.classes)} classes: choose 1 or more, and leave one."
            )
        order = permutation(len(self.classes), seed)
        kept, held_out = np.sort(order[count:]), np.sort(order[:count])
        return (
            self.subset_classes([self.classes[c] for c in kept], f"{self.split}/kept"),
            self.subset_classes([self.classes[c] for c in held_out], f"{self.split}/held-out"),
        )


def dataset_of(
    images: Any,
    labels: Any = None,
    classes: Sequence[str] | None = None,
    name: str = "arrays",
    split: str = "all",
) -> Dataset:
    """A dataset of NumPy arrays or tensors.

    >>> images = np.random.default_rng(0).random((6, 8, 8))  # or whole numbers from 0 to 255
    >>> vma.data.dataset_of(images, ["ka", "ka", "ka", "ga", "ga", "ga"]).classes
    ('ga', 'ka')

    Args:
        images: [number, height, width], or [number, 3, height, width] in colour; uint8 from 0 (background) to
            255 (full ink), or floats from 0 to 1.
        labels: The class of each image: positions in `classes`, or any numbers or names if there are no `classes`.
        classes: Names of the classes; the distinct labels, sorted, by default.
        name: Name of the dataset.
        split: Which split, and which part of it.
    """
    pixels = as_pixels(images)
    positions, names = as_positions(labels, classes, len(pixels))
    return Dataset(name, split, pixels, positions, names, f"{len(pixels)} images given as arrays")


def as_pixels(images: Any) -> UInt8[np.ndarray, "images *image"]:
    """Images as uint8 from 0 to 255; floats are rounded."""
    array = as_array("Images", images)
    if array.size == 0 or not (array.ndim == 3 or (array.ndim == 4 and array.shape[1] == 3)):
        raise InputError(
            f"Images must be [number, height, width] or [number, 3, height, width], not {list(array.shape)}."
        )
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    if array.dtype.kind != "f":
        raise InputError(f"Images must be uint8 from 0 to 255 or floats from 0 to 1, not {array.dtype}.")
    if not (array.min() >= 0 and array.max() <= 1):
        lowest, highest = array.min(), array.max()
        raise InputError(
            f"Images of floats must lie in [0, 1], not [{lowest:g}, {highest:g}]: divide 8-bit values by 255."
        )
    return np.rint(np.ascontiguousarray(array, dtype=np.float64) * 255).astype(np.uint8)


def as_positions(
    labels: Any, classes: Sequence[str] | None, count: int
) -> tuple[Int[np.ndarray, "images"] | None, tuple[str, ...]]:
    """Labels as positions in the names of the classes, and these names."""
    if labels is None:
        if classes is not None:
            raise InputError("Classes were given without labels: give the class of each image as well.")
        return None, ()
    array = as_array("Labels", labels)
    if array.shape != (count,):
        raise InputError(f"{count} images need as many labels, not labels of shape {list(array.shape)}.")
    if classes is not None:
        names = tuple(map(str, classes))
        return positions_in(names, array), names
    if array.dtype.kind not in "iuU":
        raise InputError(f"Labels must be whole numbers or names, not {array.dtype}.")
    distinct, positions = np.unique(array, return_inverse=True)
    return positions.astype(np.int64), tuple(map(str, distinct.tolist()))


def positions_in(classes: tuple[str, ...], labels: np.ndarray) -> Int[np.ndarray, "images"]:
    """The labels, checked to be positions in the names of the classes."""
    if len(set(classes)) != len(classes):
        raise InputError("A class is named twice: name each class once.")
    if labels.dtype.kind not in "iu":
        raise InputError(f"Labels must be positions in the classes, not {labels.dtype}: leave classes out.")
    if labels.min() < 0 or labels.max() >= len(classes):
        raise InputError(
            f"Labels that are positions in {len(classes)} classes must be from 0 to {len(classes) - 1}, not "
            f"{labels.min()} to {labels.max()}."
        )
    return labels.astype(np.int64)


def as_array(what: str, values: Any) -> np.ndarray:
    """An array from whatever holds one: an array of NumPy's, a tensor on any device, nested lists."""
    if hasattr(values, "detach"):  # a tensor, perhaps of floats unknown to NumPy, such as bfloat16
        values = values.detach().cpu()
        values = values.double() if values.is_floating_point() else values
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(f"{what} must be an array or a tensor, not {type(values).__name__}.") from error
