"""The one object that every loader returns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int, UInt8

from vma.data.randomness import binarize, permutation, stream
from vma.errors import InputError, TooFewImages, unknown_name


@dataclass(frozen=True)
class Dataset:
    """Images with their classes: `images[i]` shows class `classes[labels[i]]`.

    Attributes:
        name: Name of the dataset, e.g. `omniglot`.
        split: Which part of which split, e.g. `45-5/test`.
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
        """The labels, or an error that says that this dataset has none."""
        if self.labels is None:
            raise InputError(
                f"Dataset {self.name} ({self.split}) has no labels: use one with classes, e.g. omniglot."
            )
        return self.labels

    def class_counts(self) -> Int[np.ndarray, "classes"]:
        """Number of images of each class."""
        return np.bincount(self.class_labels(), minlength=len(self.classes))

    def binarized(self, seed: int = 0) -> "Dataset":
        """One fixed stochastic binarization: each pixel 255 with probability pixel / 255, else 0."""
        how = f"{self.provenance}; binarized once by seed {seed}"
        return replace(self, images=binarize(self.images, stream(seed)), provenance=how)

    def subset_images(self, indices: Int[np.ndarray, "subset"], split: str) -> "Dataset":
        """The images at `indices`, in that order, with the same classes; `split` names the result."""
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
        """(kept, held out): datasets of disjoint classes, `count` of them held out at random by `seed`."""
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
