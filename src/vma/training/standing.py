"""The one memory of a run that searches: its keys are made anew now and then, and grow old in between."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from vma.addressing import AddressDistribution, Addressing
from vma.data.dataset import Dataset
from vma.data.randomness import stream
from vma.errors import TooFewImages
from vma.memory import Memory
from vma.runs.settings import TrainSettings

STANDING = 22  # purpose of the random stream


@dataclass(frozen=True, eq=False)
class StaleMemory:
    """M as a model reads it in one update, `vma.proposals.SearchedMemory`.

    Attributes:
        memory: All items.
        stale: k_a of each, made with the weights of the last refresh.
        p_a: softmax <k_a, e^p> over these keys, with the e^p of now, which therefore learns.
        candidates: Items that a search finds.
        epsilon: Share of the reads that go anywhere, by p(a).
    """

    memory: Memory
    stale: Float[Tensor, "memory matching"]
    p_a: AddressDistribution
    candidates: int
    epsilon: float
    sharpness: float = 1.0  # q(a|x) learns how broad it is to be

    def __len__(self) -> int:
        return len(self.memory)

    def read(self, a: Int[Tensor, "*reads"]) -> Float[Tensor, "*reads_and_item"]:
        """m_a for every address in `a`."""
        return self.memory.read(a)

    def keys(self, a: Int[Tensor, "*reads"]) -> Float[Tensor, "*reads_and_key"]:
        """k_a for every address in `a`, as they were."""
        return self.stale[a]

    def prior(self) -> AddressDistribution:
        """p(a)."""
        return self.p_a

    @torch.no_grad()
    def search(self, queries: Float[Tensor, "batch matching"]) -> Int[Tensor, "batch candidates"]:
        """The addresses of the largest <k_a, q>: of tens of thousands, all are gone through."""
        scores = queries.to(self.stale) @ self.stale.T
        return scores.topk(min(self.candidates, len(self.memory)), dim=1).indices


class StandingMemory(nn.Module):
    """The items and their keys, which a checkpoint keeps: a run that goes on has the same old ones.

    Args:
        items: The images.
        matching: Size of a key.
        candidates: Items that a search finds for each target.
        refresh: Updates after which all keys are made anew.
        epsilon: Share of the reads that go anywhere, by p(a).
    """

    stale: Tensor

    def __init__(
        self,
        items: Float[Tensor, "memory *image"],
        matching: int,
        candidates: int,
        refresh: int,
        epsilon: float,
    ) -> None:
        super().__init__()
        self.memory, self.candidates, self.refresh, self.epsilon = Memory(items), candidates, refresh, epsilon
        self.register_buffer("stale", items.new_zeros(len(items), matching))

    @torch.no_grad()
    def refreshed(self, update: int, addressing: Addressing) -> None:
        """Make the keys anew, if the update is one of those that do."""
        if update % self.refresh == 0:
            self.stale = addressing.keyed(self.memory).keys.to(self.stale)

    def now(self, addressing: Addressing) -> StaleMemory:
        """The memory with the keys that there are, and p(a) with the e^p of now."""
        if addressing.prior_query is None:
            scores = self.stale.new_zeros(len(self.memory))
        else:
            scores = addressing.similarity.scores(self.stale, addressing.prior_query)
        p_a = AddressDistribution.of_scores(scores)
        return StaleMemory(self.memory, self.stale, p_a, self.candidates, self.epsilon)


def standing_memory(settings: TrainSettings, items: Dataset, device: torch.device) -> StandingMemory:
    """The memory of these images."""
    pixels = torch.from_numpy(items.images).to(device).float() / 255
    search = settings.search
    return StandingMemory(pixels, settings.model.matching, search.candidates, search.refresh, search.epsilon)


def split(settings: TrainSettings, dataset: Dataset) -> tuple[Dataset, Dataset]:
    """(memory, targets): `episode.shots` images of each class in memory, and all others of these classes."""
    draw, labels = stream(settings.seed, purpose=STANDING), dataset.class_labels()
    shots, count = settings.episode.shots, settings.search.classes or len(dataset.classes)
    if count > len(dataset.classes) or dataset.class_counts().min() <= shots:
        raise TooFewImages(
            f"A memory of {count} classes with {shots} items each, and targets besides, cannot be made of "
            f"{dataset.name}, which has {len(dataset.classes)} classes: choose a lower search.classes or "
            "episode.shots."
        )
    chosen = draw.permutation(len(dataset.classes))[:count]
    shuffled = [draw.permutation(np.flatnonzero(labels == each)) for each in chosen]
    items, rest = (
        np.concatenate(parts) for parts in zip(*((p[:shots], p[shots:]) for p in shuffled), strict=True)
    )
    memory = dataset.subset_images(items, f"{dataset.split}/memory")
    if settings.data.stochastic_binarization:
        memory = memory.binarized(settings.seed)
    return memory, dataset.subset_images(rest, f"{dataset.split}/targets")
