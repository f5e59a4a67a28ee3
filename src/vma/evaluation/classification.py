"""`classify`: few-shot recognition by where the model looks, and by the likelihood of each class."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import torch

from vma.addressing import class_mass
from vma.checks import check_counts
from vma.data.dataset import Dataset
from vma.data.episodes import Episode, EpisodeTensors
from vma.data.randomness import stream
from vma.data.samplers import EpisodeSampler
from vma.errors import InputError, TooFewImages, unknown_name
from vma.evaluation.json_values import plain
from vma.evaluation.resumable import Evaluation
from vma.evaluation.statistics import Share, wilson
from vma.evaluation.trained_run import TrainedRun
from vma.fewshot.recognition import class_log_likelihoods
from vma.memory import Memory
from vma.model import VMA

TRIALS = 20  # in one part of the work
ALPHABET = 41  # purpose of the random stream
WITHIN = ("all", "alphabet")


@dataclass(frozen=True)
class ClassifyOptions:
    """Share of targets of unseen classes recognised among `ways` classes with `shots` items each.

    Attributes:
        tasks: Pairs of ways and shots, such as 5 1 20 5.
        trials: Independent episodes with one target each.
        samples: Samples of z for each address, for recognition by likelihood; 0 leaves that out.
        seed: Decides episodes and samples.
        within: `all` draws the classes of a trial from the whole data; `alphabet` draws them from one alphabet,
            whose characters are harder to tell apart.
    """

    tasks: tuple[tuple[int, int], ...] = ((5, 1), (5, 5), (20, 1), (20, 5))
    trials: int = 400
    samples: int = 0
    seed: int = 0
    within: str = "all"


@dataclass(frozen=True)
class ClassifyRow:
    """Some trials of one task, and how many of them were right, by q(a|x) and by likelihood."""

    ways: int
    shots: int
    trials: int
    by_address: int
    by_likelihood: int


@dataclass(frozen=True)
class TaskResult:
    """One task: the share of right answers by q(a|x), by likelihood, and by guessing."""

    ways: int
    shots: int
    chance: float
    by_address: Share
    by_likelihood: Share


@dataclass(frozen=True)
class ClassifyResults:
    """All tasks, in their order."""

    tasks: list[TaskResult]


def classify(trained: TrainedRun, options: ClassifyOptions) -> Evaluation[ClassifyRow, ClassifyResults]:
    """How often a target's class is found among `ways` classes with `shots` examples each.

    >>> trained = vma.evaluation.open_run(run)  # what vma.train returned
    >>> options = vma.evaluation.ClassifyOptions(tasks=((5, 1),), trials=4)
    >>> vma.evaluation.classify(trained, options).results()
    ClassifyResults(tasks=[TaskResult(ways=5, shots=1, ...)])
    """
    model = trained.with_raw_memory("classify")
    check_counts(options, trials=1, samples=0, seed=0)
    parts = trial_blocks(trained.dataset, options.tasks, options.trials, options.seed, options.within)

    def part(number: int) -> ClassifyRow:
        return task_row(model, options, parts[number], trained.generator(options.seed, number))

    about = {**plain(trained.about), **asdict(options), "protocol": "disjoint"}
    return Evaluation("classify", about, len(parts), part, ClassifyRow, summary)


@dataclass(frozen=True)
class TrialBlock:
    """Some trials of one task: a part of the work."""

    ways: int
    shots: int
    steps: range
    draw: Callable[[int], Episode]


def trial_blocks(
    dataset: Dataset, tasks: Sequence[tuple[int, int]], trials: int, seed: int, within: str
) -> list[TrialBlock]:
    """All trials of all tasks, in blocks of at most TRIALS."""
    found = []
    for ways, shots in tasks:
        draw = trial_draw(dataset, ways, shots, seed, within)
        for start in range(0, trials, TRIALS):
            found.append(TrialBlock(ways, shots, range(start, min(start + TRIALS, trials)), draw))
    return found


def trial_draw(
    dataset: Dataset, ways: int, shots: int, seed: int, within: str = "all"
) -> Callable[[int], Episode]:
    """The episode of each trial: one target, and `shots` items each of its class and `ways` − 1 others.

    Within alphabets, P(alphabet) is proportional to its number of classes, among alphabets with at least `ways`.
    """
    if within not in WITHIN:
        raise unknown_name("choice of classes", within, WITHIN)
    parts = [dataset] if within == "all" else alphabets(dataset, ways)
    samplers = [
        EpisodeSampler(part, classes=1, distractors=ways - 1, targets=1, shots=shots, seed=seed)
        for part in parts
    ]
    ends = np.cumsum([len(part.classes) for part in parts])

    def draw(step: int) -> Episode:
        drawn = stream(seed, step, ALPHABET).integers(ends[-1])
        return samplers[int(np.searchsorted(ends, drawn, side="right"))].episode(step)

    return draw


def alphabets(dataset: Dataset, ways: int) -> list[Dataset]:
    """The classes of each alphabet that has at least `ways`, as datasets of their own."""
    named = [name.split("/") for name in dataset.classes]
    if any(len(parts) != 2 for parts in named):
        raise InputError(
            f"{dataset.name} has no alphabets: its classes would be called alphabet/character, as omniglot's are."
        )
    groups: dict[str, list[str]] = {}
    for alphabet, character in named:
        groups.setdefault(alphabet, []).append(f"{alphabet}/{character}")
    large = [names for names in groups.values() if len(names) >= ways]
    if not large:
        most = max(len(names) for names in groups.values())
        raise TooFewImages(
            f"No alphabet of {dataset.name} ({dataset.split}) has {ways} classes: ask for {most} ways or fewer."
        )
    return [dataset.subset_classes(names) for names in large]


def task_row(model: VMA, options: ClassifyOptions, block: TrialBlock, source: torch.Generator) -> ClassifyRow:
    """How many trials of a block were right, by either form."""
    by_address = by_likelihood = 0
    for step in block.steps:
        episode = block.draw(step).tensors(source.device)
        by_address += recognised(model, episode, block.ways, step % block.ways)
        if options.samples:
            by_likelihood += likeliest(model, episode, block.ways, step, options.samples, source)
    return ClassifyRow(block.ways, block.shots, len(block.steps), by_address, by_likelihood)


def summary(rows: list[ClassifyRow]) -> ClassifyResults:
    """The share of right answers of every task, with 95 % intervals."""
    tasks = []
    for ways, shots in dict.fromkeys((row.ways, row.shots) for row in rows):
        chosen = [row for row in rows if (row.ways, row.shots) == (ways, shots)]
        trials = sum(row.trials for row in chosen)
        by_address = wilson(sum(row.by_address for row in chosen), trials)
        by_likelihood = wilson(sum(row.by_likelihood for row in chosen), trials)
        tasks.append(TaskResult(ways, shots, 1 / ways, by_address, by_likelihood))
    return ClassifyResults(tasks)


@torch.no_grad()
def recognised(model: VMA, episode: EpisodeTensors, ways: int, shift: int = 0) -> bool:
    """Whether the single target's class gets the most mass of q(a|x); labels are counted from `shift`.

    Each trial has another shift, so that a model that cannot choose and takes the first class is right by chance.
    """
    q_a = model.posterior(episode.targets, Memory.of(episode.memory))
    mass = class_mass(q_a.log_probs.exp().cpu(), (episode.memory_labels.cpu() + shift) % ways, ways)
    return int(mass.argmax()) == (int(episode.target_labels) + shift) % ways


def likeliest(
    model: VMA, episode: EpisodeTensors, ways: int, shift: int, samples: int, source: torch.Generator
) -> bool:
    """Whether the single target's class is the likeliest; labels are counted from `shift`, as in `recognised`."""
    memory = Memory(episode.memory, (episode.memory_labels + shift) % ways)
    scores = class_log_likelihoods(model, memory, episode.targets, ways, samples, source)
    return int(scores.argmax()) == (int(episode.target_labels) + shift) % ways
