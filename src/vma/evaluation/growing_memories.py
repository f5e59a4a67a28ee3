"""Memories that grow around the same targets and items, with more and more confounding classes or shots."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from vma.data.dataset import Dataset
from vma.data.randomness import stream
from vma.errors import InputError
from vma.memory import Memory

NESTED = 21  # purpose of the random stream


@dataclass(frozen=True)
class ClassBlock:
    """Some classes: the memory that holds all of them, and the targets of the classes that belong to this block.

    Attributes:
        targets: x.
        labels: Class of each target, as a position among the block's classes.
        memory: M, labelled in the same way; None if there are no shots.
    """

    targets: Tensor
    labels: Int[Tensor, "batch"]
    memory: Memory | None


class GrowingMemories:
    """T targets and up to S items of every class, disjoint, drawn once by `seed`.

    A memory of C classes is a block of C consecutive classes in a random order. Each class is thus the target's own
    class once, whatever C is; and as C or the shots grow, the same target is compared beside the same items.

    Args:
        dataset: Images with labels.
        targets: T.
        shots: S, the most items that a class will have.
        seed: Another seed gives other images and another order.
    """

    def __init__(self, dataset: Dataset, targets: int = 1, shots: int = 4, seed: int = 0) -> None:
        if targets < 1 or shots < 0:
            raise InputError(f"{targets} targets and {shots} items of a class cannot be drawn: ask for more.")
        smallest = int(dataset.class_counts().min())
        if targets + shots > smallest:
            raise InputError(
                f"{targets} targets and {shots} items need {targets + shots} images of a class, but {dataset.name} "
                f"({dataset.split}) has a class of {smallest}: ask for fewer."
            )
        draw, labels = stream(seed, purpose=NESTED), dataset.class_labels()
        self.dataset, self.targets = dataset, targets
        self.order = draw.permutation(len(dataset.classes))
        chosen = [draw.permutation(np.flatnonzero(labels == c))[: targets + shots] for c in self.order]
        self.images = np.stack(chosen)

    def blocks(self, classes: int) -> int:
        """Number of blocks of `classes` in which each class occurs once."""
        if not 1 <= classes <= len(self.order):
            raise InputError(f"A memory of {classes} classes cannot be drawn from {len(self.order)} classes.")
        return -(-len(self.order) // classes)

    def block(self, classes: int, number: int, shots: int) -> ClassBlock:
        """Block `number` of a memory of `classes` × `shots`; the first classes fill up the last block."""
        if not 0 <= number < self.blocks(classes):
            raise InputError(f"There is no block {number} of {classes} classes.")
        positions = np.arange(number * classes, (number + 1) * classes)
        own = int((positions < len(self.order)).sum())
        images = self.images[positions % len(self.order)]
        x, items = images[:own, : self.targets], images[:, self.targets : self.targets + shots]
        memory = Memory(self.pixels(items), repeated(classes, shots)) if shots else None
        return ClassBlock(self.pixels(x), repeated(own, self.targets), memory)

    def pixels(self, indices: Int[np.ndarray, "classes each"]) -> Tensor:
        """The images, in [0, 1]."""
        return torch.from_numpy(self.dataset.images[indices.flatten()]).float().div_(255)


def repeated(classes: int, each: int) -> Int[Tensor, "labels"]:
    """0, 0, …, 1, 1, …"""
    return torch.arange(classes).repeat_interleave(each)
