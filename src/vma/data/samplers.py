"""The four samplers of episodes: few-shot, recall, sequences, and plain batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Int

from vma.data.episodes import BATCH, FEW_SHOT, NOTHING, RECALL, SEQUENCE, Episode, Sampler
from vma.data.randomness import distinct_positions, permutation
from vma.errors import InputError, TooFewImages, unknown_name

PROTOCOLS = ("disjoint", "with-replacement")
MEANINGS = ("per-class", "total")


@dataclass(frozen=True, eq=False, kw_only=True)
class EpisodeSampler(Sampler):
    """Few-shot episodes: C classes with T targets and S memory items each, and further classes without targets.

    >>> glyphs = vma.data.load_dataset("glyphs", "test")
    >>> sampler = vma.data.EpisodeSampler(glyphs, classes=5, targets=2, shots=3)
    >>> episode = sampler.episode(0)  # the same whenever and wherever it is asked for
    >>> episode.targets.shape, episode.memory.shape
    ((10, 26, 26), (15, 26, 26))

    Attributes:
        classes: C, or `all` for every class of the dataset.
        targets: T, the targets of each of the C classes.
        shots: S, the memory items of each class; or one number for each of the C classes, then each distractor.
        distractors: Number of further classes that are in memory only.
        protocol: `disjoint`: an image occurs at most once in an episode, so a target is never in memory.
            `with-replacement`: every image is drawn from its class independently, as in the public GMN code.
        counts: `per-class`, or `total`: T and S are the numbers in the whole episode, and the class of each image
            is drawn among the C (for S, also the distractors), as in the public GMN code.
    """

    classes: int | Literal["all"] = 8
    targets: int = 4
    shots: int | Sequence[int] = 4
    distractors: int = 0
    protocol: Literal["disjoint", "with-replacement"] = "disjoint"
    counts: Literal["per-class", "total"] = "per-class"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_name("protocol", self.protocol, PROTOCOLS)
        check_name("meaning of counts", self.counts, MEANINGS)
        if isinstance(self.classes, str):
            check_name("number of classes", self.classes, ("all",))
        self.check_classes()
        self.check_shots()
        self.check_images()

    @cached_property
    def target_classes(self) -> int:
        """C."""
        if isinstance(self.classes, str):
            return len(self.dataset.classes) - self.distractors
        return self.classes

    @cached_property
    def classes_per_episode(self) -> int:
        """C and the distractors."""
        return self.target_classes + self.distractors

    @cached_property
    def class_shots(self) -> Int[np.ndarray, "classes"]:
        """S for each class of an episode; for `total`, every entry is the total."""
        shots = [self.shots] * self.classes_per_episode if isinstance(self.shots, int) else self.shots
        return np.array(shots, dtype=np.int64)

    @cached_property
    def class_sizes(self) -> Int[np.ndarray, "all_classes"]:
        """Number of images of each class of the dataset."""
        return self.dataset.class_counts()

    @cached_property
    def by_class(self) -> Int[np.ndarray, "images"]:
        """The images of the first class, then those of the second, and so on."""
        return np.argsort(self.dataset.class_labels(), kind="stable")

    @cached_property
    def class_starts(self) -> Int[np.ndarray, "all_classes"]:
        """Where each class begins in `by_class`."""
        return np.cumsum(self.class_sizes) - self.class_sizes

    def episode(self, step: int) -> Episode:
        """The episode number `step` of this process."""
        draw = self.generator(step, FEW_SHOT)
        classes = draw.random(len(self.class_sizes)).argsort()[: self.classes_per_episode]
        targets, items = self.draw_counts(draw)
        positions = self.draw_positions(draw, self.class_sizes[classes], int((targets + items).max()))
        indices = self.by_class[self.class_starts[classes][:, None] + positions]
        column = np.arange(indices.shape[1])
        is_target = column < targets[:, None]
        is_item = (column < (targets + items)[:, None]) & ~is_target
        return self.compose(
            step,
            classes=classes,
            target_labels=is_target.nonzero()[0],
            target_indices=indices[is_target],
            memory_labels=is_item.nonzero()[0],
            memory_indices=indices[is_item],
        )

    def draw_counts(
        self, draw: np.random.Generator
    ) -> tuple[Int[np.ndarray, "classes"], Int[np.ndarray, "classes"]]:
        """How many targets and memory items each class of an episode has."""
        count = self.classes_per_episode
        if self.counts == "per-class":
            return self.targets * (np.arange(count) < self.target_classes), self.class_shots
        target_classes = draw.integers(self.target_classes, size=self.targets)
        memory_classes = draw.integers(count, size=self.class_shots[0])
        return np.bincount(target_classes, minlength=count), np.bincount(memory_classes, minlength=count)

    def draw_positions(
        self, draw: np.random.Generator, sizes: Int[np.ndarray, "classes"], count: int
    ) -> Int[np.ndarray, "classes count"]:
        """For each class, `count` positions below its size in random order; distinct if `disjoint`."""
        if self.protocol == "with-replacement":
            return (draw.random((len(sizes), count)) * sizes[:, None]).astype(np.int64)
        return distinct_positions(draw, sizes, count)

    def check_classes(self) -> None:
        """Refuse an episode without classes, or with more classes than there are."""
        available, needed = len(self.class_sizes), self.classes_per_episode
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

    def check_shots(self) -> None:
        """Refuse shots that do not fit the classes, or leave the memory empty."""
        if self.counts == "total" and not isinstance(self.shots, int):
            raise InputError(
                "With counts 'total' shots must be one number: the memory items of the whole episode."
            )
        if len(self.class_shots) != self.classes_per_episode:
            raise InputError(
                f"{len(self.class_shots)} numbers of shots were given for {self.classes_per_episode} classes: "
                "give one for each class, and then one for each distractor."
            )
        if self.class_shots.min() < 0 or self.class_shots.max() < 1:
            raise InputError(
                f"The shots {self.class_shots.tolist()} leave the memory empty or are negative: give 1 or more."
            )

    def check_images(self) -> None:
        """Refuse classes with too few images for any place in an episode that they may be drawn for."""
        most = self.class_shots + self.targets * (np.arange(len(self.class_shots)) < self.target_classes)
        needed = 1 if self.protocol == "with-replacement" else int(most.max())
        if (small := np.flatnonzero(self.class_sizes < needed)).size:
            worst = int(small[self.class_sizes[small].argmin()])
            raise TooFewImages(
                f"Class {self.dataset.classes[worst]!r} has {self.class_sizes[worst]} images, but {self.targets} "
                f"targets and {self.class_shots.max()} memory items need {needed}: ask for fewer, or leave out "
                f"the {small.size} class(es) of {self.dataset.name} that have too few."
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class RecallSampler(Sampler):
    """Recall: the memory is drawn from the data, and every target is one of its items, drawn uniformly.

    Labels are positions in the memory: `target_labels` holds the address of each target. A target equals its item
    even if pixels are drawn.

    >>> glyphs = vma.data.load_dataset("glyphs", "test")
    >>> episode = vma.data.RecallSampler(glyphs, memory=64, targets=8).episode(0)
    >>> bool((episode.targets == episode.memory[episode.target_labels]).all())
    True

    Attributes:
        memory: |M|.
        targets: Number of targets, drawn with replacement.
    """

    memory: int = 256
    targets: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.memory <= len(self.dataset) or self.targets < 1:
            raise InputError(
                f"{self.memory} memory items and {self.targets} targets cannot be drawn from "
                f"{len(self.dataset)} images of {self.dataset.name}: ask for at least 1 of both, and no more items "
                "than images."
            )

    def episode(self, step: int) -> Episode:
        """The episode number `step` of this process."""
        draw = self.generator(step, RECALL)
        items = draw.choice(len(self.dataset), self.memory, replace=False)
        addresses = draw.integers(self.memory, size=self.targets)
        memory = self.images(step, items)
        return Episode(
            targets=memory[addresses],
            target_labels=addresses,
            memory=memory,
            memory_labels=np.arange(self.memory),
            classes=NOTHING,
            target_indices=items[addresses],
            memory_indices=items,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class SequenceSampler(Sampler):
    """Sequences of images of few classes, each image drawn independently: they train Generative Matching Networks.

    The targets of an episode are all its images, one sequence after another, each in order; there is no memory.

    >>> glyphs = vma.data.load_dataset("glyphs", "test")
    >>> vma.data.SequenceSampler(glyphs, sequences=4, length=5, classes=2).episode(0).targets.shape
    (20, 26, 26)

    Attributes:
        sequences: Number of sequences.
        length: Images of a sequence.
        classes: Classes of a sequence.
    """

    sequences: int = 20
    length: int = 10
    classes: int = 2

    def __post_init__(self) -> None:
        if self.sequences < 1 or self.length < 1:
            raise InputError(
                f"{self.sequences} sequences of {self.length} images cannot be drawn: ask for 1 or more."
            )
        _ = self.single  # refuses episodes that cannot be drawn

    @cached_property
    def single(self) -> EpisodeSampler:
        """One sequence per episode, class by class."""
        return EpisodeSampler(
            self.dataset, classes=self.classes, targets=self.length, shots=1, counts="total",
            protocol="with-replacement", seed=self.seed, rank=self.rank, world=self.world,
        )  # fmt: skip

    def episode(self, step: int) -> Episode:
        """The sequences number `step` of this process."""
        drawn = [self.single.episode(step * self.sequences + i) for i in range(self.sequences)]
        draw = self.generator(step, SEQUENCE)
        shuffled = [(sequence, draw.permutation(self.length)) for sequence in drawn]
        return self.compose(
            step,
            classes=np.arange(len(self.dataset.classes)),
            target_labels=np.concatenate([one.classes[one.target_labels[order]] for one, order in shuffled]),
            target_indices=np.concatenate([one.target_indices[order] for one, order in shuffled]),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchSampler(Sampler):
    """Plain minibatches without a memory of data, for a learned memory or a VAE.

    The data is read in a new order in each epoch, without a gap: batch i holds the positions i·B … (i + 1)·B − 1 of
    all epochs laid end to end, and the processes share out the batches. Labels are passed on if there are any, and
    are −1 otherwise.

    >>> glyphs = vma.data.load_dataset("glyphs", "test")
    >>> vma.data.BatchSampler(glyphs, batch=32).episode(0).targets.shape
    (32, 26, 26)

    Attributes:
        batch: B.
    """

    batch: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch < 1 or not len(self.dataset):
            raise InputError(
                f"A batch of {self.batch} cannot be drawn from {len(self.dataset)} images: ask for 1 or more."
            )

    def episode(self, step: int) -> Episode:
        """The batch number `step` of this process, as an episode with an empty memory."""
        count, labels = len(self.dataset), self.dataset.labels
        start = self.index(step) * self.batch
        epochs = range(start // count, (start + self.batch - 1) // count + 1)
        order = np.concatenate([epoch_order(count, self.seed, epoch) for epoch in epochs])
        indices = order[start - epochs.start * count :][: self.batch]
        return self.compose(
            step,
            classes=np.arange(len(self.dataset.classes)),
            target_labels=np.full(self.batch, -1) if labels is None else labels[indices],
            target_indices=indices,
        )


@lru_cache(maxsize=4)
def epoch_order(count: int, seed: int, epoch: int) -> Int[np.ndarray, "count"]:
    """The order in which an epoch reads the data."""
    return permutation(count, seed, epoch, BATCH)


def check_name(kind: str, name: str, names: tuple[str, ...]) -> None:
    """Refuse a name that is not among `names`."""
    if name not in names:
        raise unknown_name(kind, name, names)
