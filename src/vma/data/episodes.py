"""What a model is given at one step, and what all samplers of such episodes have in common."""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from vma.data.dataset import Dataset
from vma.data.randomness import binarize, stream
from vma.errors import InputError

FEW_SHOT, RECALL, BATCH, BINARIZATION, SEQUENCE = range(1, 6)  # purposes, each with its own random numbers
NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Episode:
    """Targets x, and the memory M that explains them; pixels from 0 to 255.

    >>> glyphs = vma.data.load_dataset("glyphs", "test")
    >>> episode = vma.data.EpisodeSampler(glyphs, classes=5, targets=2, shots=3).episode(0)
    >>> isinstance(episode, vma.data.Episode), isinstance(episode.tensors(), vma.data.EpisodeTensors)
    (True, True)

    Attributes:
        targets: The images x.
        target_labels: Class of each target, as a position in `classes`.
        memory: The items m_1 … m_|M|; none if the memory is learned.
        memory_labels: Class of each item, as a position in `classes`.
        classes: The dataset's class at each position; empty where labels are positions in the memory.
        target_indices: Which images of the dataset the targets are.
        memory_indices: Which images of the dataset the memory items are.
    """

    targets: UInt8[np.ndarray, "batch *image"]
    target_labels: Int[np.ndarray, "batch"]
    memory: UInt8[np.ndarray, "items *image"]
    memory_labels: Int[np.ndarray, "items"]
    classes: Int[np.ndarray, "classes"]
    target_indices: Int[np.ndarray, "batch"]
    memory_indices: Int[np.ndarray, "items"]

    def tensors(self, device: torch.device | str | None = None) -> "EpisodeTensors":
        """The same episode for a model: images as float32 in [0, 1]."""
        return EpisodeTensors(
            targets=torch.from_numpy(self.targets).to(device).float().div_(255),
            target_labels=torch.from_numpy(self.target_labels).to(device),
            memory=torch.from_numpy(self.memory).to(device).float().div_(255),
            memory_labels=torch.from_numpy(self.memory_labels).to(device),
        )


@dataclass(frozen=True)
class EpisodeTensors:
    """An episode as tensors; pixels in [0, 1]."""

    targets: Float[Tensor, "batch *image"]
    target_labels: Int[Tensor, "batch"]
    memory: Float[Tensor, "items *image"]
    memory_labels: Int[Tensor, "items"]


@dataclass(frozen=True, eq=False)
class Sampler(ABC):
    """One episode per step, a function of (seed, step · world + rank) alone, whenever and wherever it is asked for.

    Attributes:
        dataset: Where the images come from.
        seed: Another seed gives other episodes.
        rank: Number of this process among `world`; processes with the same seed see different episodes.
        world: Number of processes.
        stochastic_binarization: Draw pixels anew at each step, 255 with the grey level as probability, else 0.
    """

    dataset: Dataset
    _: KW_ONLY
    seed: int = 0
    rank: int = 0
    world: int = 1
    stochastic_binarization: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world:
            raise InputError(
                f"Rank {self.rank} is not one of {self.world} processes: use 0 to {self.world - 1}."
            )
        stream(self.seed)  # refuses an invalid seed

    @abstractmethod
    def episode(self, step: int) -> Episode:
        """The episode number `step` of this process."""

    def index(self, step: int) -> int:
        """step · world + rank."""
        if step < 0:
            raise InputError(f"Step {step} is negative: steps count from 0.")
        return step * self.world + self.rank

    def generator(self, step: int, purpose: int) -> np.random.Generator:
        """The random numbers of a step, for one purpose."""
        return stream(self.seed, self.index(step), purpose)

    def images(self, step: int, indices: Int[np.ndarray, "images"]) -> UInt8[np.ndarray, "images *image"]:
        """The images at `indices`, binarized if the sampler does so."""
        images = self.dataset.images.take(indices, axis=0)
        if not self.stochastic_binarization:
            return images
        return binarize(images, self.generator(step, BINARIZATION))

    def compose(
        self,
        step: int,
        *,
        classes: Int[np.ndarray, "classes"],
        target_labels: Int[np.ndarray, "batch"],
        target_indices: Int[np.ndarray, "batch"],
        memory_labels: Int[np.ndarray, "items"] = NOTHING,
        memory_indices: Int[np.ndarray, "items"] = NOTHING,
    ) -> Episode:
        """The episode of these images, with its targets and its memory binarized independently."""
        images = self.images(step, np.concatenate([target_indices, memory_indices]))
        return Episode(
            targets=images[: len(target_indices)],
            target_labels=target_labels,
            memory=images[len(target_indices) :],
            memory_labels=memory_labels,
            classes=classes,
            target_indices=target_indices,
            memory_indices=memory_indices,
        )
