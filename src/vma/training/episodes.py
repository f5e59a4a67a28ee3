"""The episodes of a run: for training, and for validation on held-out training classes."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vma.data import DATASETS, Dataset, load_dataset
from vma.data.episodes import Episode, Sampler
from vma.data.samplers import BatchSampler, EpisodeSampler, RecallSampler, SequenceSampler
from vma.errors import InputError, TooFewImages
from vma.memory import Memory, PrecedingImages
from vma.runs.settings import SearchSettings, TrainSettings
from vma.training.standing import split

OPTIONS = (
    "The options are --data.held-out, --episode.classes, --episode.targets, --episode.shots and --sleep.classes; "
    "an episode has to fit the classes for training and those held out alike."
)
VALIDATION_SEED = 1_000_003  # added to the seed, so that validation episodes never occur in training
DREAM_SEED = 2_000_003


@dataclass(frozen=True)
class RunEpisodes:
    """Where a run's episodes come from, the size and channels of its images, and a run's own memory, if any."""

    train: Sampler
    valid: Sampler
    size: tuple[int, int]
    memories: tuple[Sampler, ...] = ()
    channels: int = 1
    standing: Dataset | None = None

    def dreams(self, update: int) -> Episode:
        """The episode whose memory is dreamt from; memories of all sizes take turns."""
        samplers = self.memories or (self.train,)
        return samplers[update % len(samplers)].episode(update)


def open_episodes(
    settings: TrainSettings, data: Dataset | Path | None, rank: int = 0, world: int = 1
) -> RunEpisodes:
    """Training and validation episodes; the test part of the data is never loaded."""
    try:
        kept, held_out = datasets(settings, data)
        train, standing = training(settings, kept, rank, world)
        valid = sampler(settings, held_out, settings.seed + VALIDATION_SEED, 0, 1)
        memories = tuple(
            sampler(asleep, kept, settings.seed + DREAM_SEED, rank, world)
            for asleep in sizes_asleep(settings)
        )
    except TooFewImages as error:
        raise InputError(f"{error} {OPTIONS}") from None
    return RunEpisodes(train, valid, kept.size, memories, kept.channels, standing)


def training(settings: TrainSettings, kept: Dataset, rank: int, world: int) -> tuple[Sampler, Dataset | None]:
    """Episodes with memories of their own; or, where memory is searched, targets alone, and the one memory."""
    if not settings.search.candidates:
        return sampler(settings, kept, settings.seed, rank, world), None
    memory, rest = split(settings, kept)
    episode = replace(
        settings.episode, kind="batch", targets=settings.episode.classes * settings.episode.targets
    )
    batches = replace(settings, episode=episode, search=SearchSettings())
    return sampler(batches, rest, settings.seed, rank, world), memory


def sizes_asleep(settings: TrainSettings) -> list[TrainSettings]:
    """The settings once for each memory size that `sleep` lists, in place of the episodes' own size."""
    sleep, episode = settings.sleep, settings.episode
    if not sleep.share or episode.kind != "few-shot":
        return []
    shots = sleep.shots or episode.shots
    return [
        replace(settings, episode=replace(episode, classes=classes, shots=shots, targets=1))
        for classes in sleep.classes or (episode.classes,)
    ]


def datasets(settings: TrainSettings, data: Dataset | Path | None) -> tuple[Dataset, Dataset]:
    """(for training, for validation): the data's own validation part, or else held-out training classes."""
    if isinstance(data, Dataset):
        return held_out(settings, data)
    chosen, parts = settings.data, DATASETS[settings.data.name].parts

    def load(part: str) -> Dataset:
        return load_dataset(
            chosen.name, part, size=chosen.size, split=chosen.split, data=data, folder=chosen.folder
        )

    train = load("train")
    if "valid" in parts:
        return train, load("valid")
    return held_out(settings, train)


def held_out(settings: TrainSettings, train: Dataset) -> tuple[Dataset, Dataset]:
    """(kept, held out) of the training data: by classes, or by images if episodes are not drawn by class."""
    if train.labels is not None and settings.episode.kind in ("few-shot", "sequence"):
        return train.hold_out_classes(settings.data.held_out, settings.seed)
    enough = settings.episode.shots if settings.episode.kind == "recall" else 1
    return hold_out_images(train, max(enough, len(train) // 20), settings.seed)


def hold_out_images(dataset: Dataset, count: int, seed: int) -> tuple[Dataset, Dataset]:
    """(kept, held out): `count` random images are held out, for episodes that are not drawn by class."""
    order = np.random.default_rng(seed).permutation(len(dataset))
    kept, held_out = np.sort(order[count:]), np.sort(order[:count])
    return (
        dataset.subset_images(kept, f"{dataset.split}/kept"),
        dataset.subset_images(held_out, f"{dataset.split}/held-out"),
    )


def sampler(settings: TrainSettings, dataset: Dataset, seed: int, rank: int, world: int) -> Sampler:
    """The sampler that the episode's settings ask for."""
    episode, binarize = settings.episode, settings.data.stochastic_binarization
    shared: dict[str, Any] = {"seed": seed, "rank": rank, "world": world, "stochastic_binarization": binarize}
    classes, targets, shots = episode.classes, episode.targets, episode.shots
    match episode.kind:
        case "few-shot":
            return EpisodeSampler(dataset, classes=classes, targets=targets, shots=shots, **shared)
        case "recall":
            return RecallSampler(dataset, memory=shots, targets=targets, **shared)
        case "sequence":
            return SequenceSampler(dataset, sequences=shots, length=targets, classes=classes, **shared)
        case "batch":
            return BatchSampler(dataset, batch=targets, **shared)


def for_model(
    episode: Episode, device: torch.device, length: int = 0
) -> tuple[torch.Tensor, Memory | PrecedingImages | None]:
    """Targets and memory on `device`; the memory is None if it is learned or there is none.

    With a `length`, targets are the images of sequences, and the memory of each is the images before it.
    """
    tensors = episode.tensors(device)
    if length:
        return tensors.targets, PrecedingImages(length)
    if len(tensors.memory) == 0:
        return tensors.targets, None
    return tensors.targets, Memory(tensors.memory, tensors.memory_labels)


def generator(seed: int, update: int, rank: int, device: torch.device) -> torch.Generator:
    """The randomness of one update: a function of seed, update and rank, so that no state has to be saved."""
    mixed = np.random.SeedSequence([seed, update, rank]).generate_state(1, np.uint64)
    return torch.Generator(device).manual_seed(int(mixed[0]))
