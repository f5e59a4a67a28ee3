"""Training episodes: targets x and a memory M, a function of (seed, step) and nothing else."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int

from vma.data.dataset import Dataset
from vma.data.episodes import BATCH, FEW_SHOT, RECALL, SEQUENCE, Episode, EpisodeTensors, Steps
from vma.data.randomness import permutation
from vma.errors import InputError, TooFewImages, unknown_name

__all__ = [
    "BatchSampler",
    "Episode",
    "EpisodeSampler",
    "EpisodeTensors",
    "RecallSampler",
    "Sampler",
    "SequenceSampler",
]


@runtime_checkable
class Sampler(Protocol):
    """What every sampler is: the episode of a step, the same whenever and wherever it is asked for."""

    def episode(self, step: int) -> Episode:
        """The episode number `step`."""


class EpisodeSampler:
    """Few-shot episodes: C classes with T targets and S memory items each, and distractors without targets.

    Args:
        dataset: Images with labels.
        classes: C, or `all` for every class of the dataset.
        targets: T, the targets of each of the C classes.
        shots: S, the memory items of each class; or a number for each of the C classes, then each distractor.
        distractors: Number of further classes that are in memory only.
        protocol: `disjoint`: an image occurs at most once in an episode, so a target never is in memory.
            `with-replacement`: every image is drawn from its class by itself, as in the public GMN code.
        counts: `per-class`, or `total`: T and S are the numbers in the whole episode, each image of a class
            drawn at random among the C (for S: and the distractors), as in the public GMN code.
        seed: Another seed gives other episodes.
        rank: Number of this process of `world`; processes see different episodes of the same seed.
        world: Number of processes.
        stochastic_binarization: Draw pixels as 0 or 255, grey levels being probabilities, at each step anew.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        classes: int | Literal["all"] = 8,
        targets: int = 4,
        shots: int | Sequence[int] = 4,
        distractors: int = 0,
        protocol: Literal["disjoint", "with-replacement"] = "disjoint",
        counts: Literal["per-class", "total"] = "per-class",
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        stochastic_binarization: bool = False,
    ) -> None:
        self.dataset = dataset
        self.protocol = _one_of("protocol", protocol, ("disjoint", "with-replacement"))
        self.counts = _one_of("meaning of counts", counts, ("per-class", "total"))
        self.distractors = distractors
        if isinstance(classes, str):
            _one_of("number of classes", classes, ("all",))
            classes = len(dataset.classes) - distractors
        self.target_classes = classes
        self.targets = targets
        self._steps = Steps(seed, rank, world, stochastic_binarization)
        self._by_class = np.argsort(dataset.class_labels(), kind="stable")
        self._sizes = dataset.class_counts()
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._check_classes()
        self.shots = self._shots_per_class(shots)
        self._check_images()

    @property
    def classes_per_episode(self) -> int:
        """C and the distractors."""
        return self.target_classes + self.distractors

    def episode(self, step: int) -> Episode:
        """The episode number `step`."""
        draw = self._steps.generator(FEW_SHOT, step)
        classes = draw.random(len(self._sizes)).argsort()[: self.classes_per_episode]
        target_counts, memory_counts = self._counts(draw)
        wanted = target_counts + memory_counts
        within = self._draw_images(draw, classes, int(wanted.max()))
        indices = self._by_class[self._starts[classes][:, None] + within]
        column = np.arange(indices.shape[1])
        is_target = column < target_counts[:, None]
        is_memory = (column < wanted[:, None]) & ~is_target
        return self._steps.episode(
            self.dataset,
            step,
            target_labels=is_target.nonzero()[0],
            memory_labels=is_memory.nonzero()[0],
            classes=classes,
            target_indices=indices[is_target],
            memory_indices=indices[is_memory],
        )

    def _counts(
        self, draw: np.random.Generator
    ) -> tuple[Int[np.ndarray, "classes"], Int[np.ndarray, "classes"]]:
        """How many targets and memory items each class of this episode has."""
        have_targets = np.arange(self.classes_per_episode) < self.target_classes
        if self.counts == "per-class":
            return self.targets * have_targets, self.shots
        target_classes = draw.integers(self.target_classes, size=self.targets)
        memory_classes = draw.integers(self.classes_per_episode, size=self.shots[0])
        return (
            np.bincount(target_classes, minlength=self.classes_per_episode),
            np.bincount(memory_classes, minlength=self.classes_per_episode),
        )

    def _draw_images(
        self, draw: np.random.Generator, classes: Int[np.ndarray, "classes"], count: int
    ) -> Int[np.ndarray, "classes count"]:
        """For each class, positions of `count` of its images in random order; distinct if `disjoint`."""
        sizes = self._sizes[classes]
        if self.protocol == "with-replacement":
            return (draw.random((len(classes), count)) * sizes[:, None]).astype(np.int64)
        return distinct_positions(draw, sizes, count)

    def _check_classes(self) -> None:
        available, needed = len(self._sizes), self.classes_per_episode
        if self.target_classes < 1 or self.distractors < 0 or self.targets < 1:
            raise InputError(
                f"An episode needs at least one class and one target: not {self.target_classes} classes, "
                f"{self.distractors} distractors, {self.targets} targets."
            )
        if needed > available:
            raise TooFewImages(
                f"An episode of {needed} classes cannot be drawn from {self.dataset.name} "
                f"({self.dataset.split}), which has {available}: choose fewer classes."
            )

    def _shots_per_class(self, shots: int | Sequence[int]) -> Int[np.ndarray, "classes"]:
        """S for each class of an episode; for `total` their common value is the total."""
        if isinstance(shots, int):
            shots = [shots] * self.classes_per_episode
        elif self.counts == "total":
            raise InputError(
                "With counts 'total' shots must be one number: the memory items of the whole episode."
            )
        if len(shots) != self.classes_per_episode:
            raise InputError(
                f"{len(shots)} numbers of shots were given for {self.classes_per_episode} classes: "
                "give one for each class, and then one for each distractor."
            )
        if min(shots) < 0 or max(shots) < 1:
            raise InputError(
                f"The shots {list(shots)} leave the memory empty or are negative: give 1 or more."
            )
        return np.array(shots, dtype=np.int64)

    def _check_images(self) -> None:
        """Refuse classes that cannot fill any place of an episode they may be drawn for."""
        needed = 1 if self.protocol == "with-replacement" else self._most_images()
        if (small := np.flatnonzero(self._sizes < needed)).size:
            worst = int(small[self._sizes[small].argmin()])
            raise TooFewImages(
                f"Class {self.dataset.classes[worst]!r} has {self._sizes[worst]} images, but {self.targets} "
                f"targets and {self.shots.max()} memory items need {needed}: ask for fewer, or leave out the "
                f"{small.size} class(es) of {self.dataset.name} that have too few."
            )

    def _most_images(self) -> int:
        """The most images that a class can be asked for in an episode without repetition."""
        return int((self.shots + self.targets * (np.arange(len(self.shots)) < self.target_classes)).max())


class RecallSampler:
    """Recall: the memory is drawn from the data, and every target is one of its items, drawn uniformly.

    Labels are positions in the memory: `target_labels` is the address of each target.

    Args:
        dataset: Images; labels are not needed.
        memory: |M|.
        targets: Number of targets, drawn with replacement.
        seed: Another seed gives other episodes.
        rank: Number of this process of `world`; processes see different episodes of the same seed.
        world: Number of processes.
        stochastic_binarization: The same; a target stays equal to its item.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        memory: int = 256,
        targets: int = 32,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        stochastic_binarization: bool = False,
    ) -> None:
        if not 1 <= memory <= len(dataset) or targets < 1:
            raise InputError(
                f"{memory} memory items and {targets} targets cannot be drawn from {len(dataset)} images of "
                f"{dataset.name}: ask for at least 1 of both, and no more items than images."
            )
        self.dataset, self.memory, self.targets = dataset, memory, targets
        self._steps = Steps(seed, rank, world, stochastic_binarization)

    def episode(self, step: int) -> Episode:
        """The episode number `step`."""
        draw = self._steps.generator(RECALL, step)
        items = draw.choice(len(self.dataset), self.memory, replace=False)
        addresses = draw.integers(self.memory, size=self.targets)
        memory = self._steps.images(self.dataset, items, step)
        return Episode(
            targets=memory[addresses],
            target_labels=addresses,
            memory=memory,
            memory_labels=np.arange(self.memory),
            classes=np.zeros(0, dtype=np.int64),
            target_indices=items[addresses],
            memory_indices=items,
        )


class SequenceSampler:
    """Sequences of images of few classes, each image drawn by itself, as Generative Matching Networks are trained.

    The targets of an episode are all images, those of a sequence together and in order; there is no memory.

    Args:
        dataset: Images with labels.
        sequences: Number of sequences.
        length: Images of a sequence.
        classes: Classes of a sequence.
        seed: Another seed gives other sequences.
        rank: Number of this process of `world`; processes see different sequences of the same seed.
        world: Number of processes.
        stochastic_binarization: Draw pixels as 0 or 255, grey levels being probabilities, at each step anew.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        sequences: int = 20,
        length: int = 10,
        classes: int = 2,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        stochastic_binarization: bool = False,
    ) -> None:
        if sequences < 1 or length < 1:
            raise InputError(f"{sequences} sequences of {length} images cannot be drawn: ask for 1 or more.")
        self.dataset, self.sequences, self.length = dataset, sequences, length
        self._sampler = EpisodeSampler(
            dataset, classes=classes, targets=length, shots=1, counts="total", protocol="with-replacement",
            seed=seed, rank=rank, world=world,
        )  # fmt: skip
        self._steps = Steps(seed, rank, world, stochastic_binarization)

    def episode(self, step: int) -> Episode:
        """The sequences number `step`."""
        drawn = [self._sampler.episode(step * self.sequences + i) for i in range(self.sequences)]
        draw, nothing = self._steps.generator(SEQUENCE, step), np.zeros(0, dtype=np.int64)
        pairs = [(episode, draw.permutation(self.length)) for episode in drawn]  # drawn class by class
        return self._steps.episode(
            self.dataset,
            step,
            target_labels=np.concatenate([e.classes[e.target_labels[o]] for e, o in pairs]),
            memory_labels=nothing,
            classes=np.arange(len(self.dataset.classes)),
            target_indices=np.concatenate([e.target_indices[o] for e, o in pairs]),
            memory_indices=nothing,
        )


class BatchSampler:
    """Plain minibatches without a memory of data, for a learned memory or a VAE.

    The data is read in a new order in each epoch and without a gap: batch i holds the positions
    i·B … (i + 1)·B − 1 of all epochs put one after the other.

    Args:
        dataset: Images; labels are passed on where there are any, and are −1 where not.
        batch: B.
        seed: Another seed gives other orders.
        rank: Number of this process of `world`; the processes share out the batches.
        world: Number of processes.
        stochastic_binarization: Draw pixels as 0 or 255, grey levels being probabilities, at each step anew.
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        batch: int = 32,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
        stochastic_binarization: bool = False,
    ) -> None:
        if batch < 1 or not len(dataset):
            raise InputError(
                f"A batch of {batch} cannot be drawn from {len(dataset)} images: ask for 1 or more."
            )
        self.dataset, self.batch, self.seed = dataset, batch, seed
        self._steps = Steps(seed, rank, world, stochastic_binarization)

    def episode(self, step: int) -> Episode:
        """The batch number `step` of this process, as an episode with an empty memory."""
        count = len(self.dataset)
        start = self._steps.index(step) * self.batch
        epochs = range(start // count, (start + self.batch - 1) // count + 1)
        order = np.concatenate([_epoch_order(count, self.seed, epoch) for epoch in epochs])
        indices = order[start - epochs.start * count :][: self.batch]
        labels = self.dataset.labels
        nothing = np.zeros(0, dtype=np.int64)
        return self._steps.episode(
            self.dataset,
            step,
            target_labels=np.full(self.batch, -1) if labels is None else labels[indices],
            memory_labels=nothing,
            classes=np.arange(len(self.dataset.classes)),
            target_indices=indices,
            memory_indices=nothing,
        )


def distinct_positions(
    draw: np.random.Generator, sizes: Int[np.ndarray, "classes"], count: int
) -> Int[np.ndarray, "classes count"]:
    """For each class, `count` distinct positions below its size, in random order, all orders alike.

    Where repetitions are rare, positions are drawn by themselves and rows that repeat one are drawn again;
    else all positions are sorted by random keys.
    """
    if sizes.min() < count * count:
        keys = draw.random((len(sizes), int(sizes.max())))
        keys[np.arange(keys.shape[1]) >= sizes[:, None]] = np.inf
        return keys.argsort(axis=1)[:, :count]
    chosen = (draw.random((len(sizes), count)) * sizes[:, None]).astype(np.int64)
    while (repeated := (np.diff(np.sort(chosen, axis=1), axis=1) == 0).any(axis=1)).any():
        again = draw.random((int(repeated.sum()), count)) * sizes[repeated, None]
        chosen[repeated] = again.astype(np.int64)
    return chosen


@lru_cache(maxsize=4)
def _epoch_order(count: int, seed: int, epoch: int) -> Int[np.ndarray, "count"]:
    return permutation(count, seed, epoch, BATCH)


def _one_of(kind: str, name: str, names: tuple[str, ...]) -> str:
    if name not in names:
        raise unknown_name(kind, name, names)
    return name
