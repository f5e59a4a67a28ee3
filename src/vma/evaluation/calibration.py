"""`calibration`: whether the probabilities that each rule of recognition gives come true."""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median

import numpy as np
import torch

from vma.addressing import class_mass
from vma.checks import check_counts
from vma.data.episodes import EpisodeTensors
from vma.evaluation.classification import TrialBlock, trial_blocks
from vma.evaluation.json_values import plain
from vma.evaluation.resumable import Evaluation
from vma.evaluation.statistics import Mean, Share, mean_of, wilson
from vma.evaluation.trained_run import TrainedRun
from vma.fewshot.lookup import look_up
from vma.fewshot.recognition import RULES, Rule, rule, shares
from vma.memory import KeyedMemory
from vma.model import VMA

BINS = 10  # of equal width
LEAST = float(np.finfo(np.float32).tiny)  # a probability that was rounded to 0 counts as this instead


@dataclass(frozen=True)
class CalibrationOptions:
    """How often a rule of recognition is right about targets of unseen classes, and how sure it claims to be.

    Attributes:
        tasks: Pairs of ways and shots, such as 5 1 20 5.
        trials: Independent episodes with one target each.
        rules: Rules of `ImageMemory.recognise`.
        samples: Draws of z for each item whose likelihood is asked for.
        seed: Decides episodes and samples.
        within: `all` draws the classes of a trial from the whole data; `alphabet` draws them from one alphabet.
    """

    tasks: tuple[tuple[int, int], ...] = ((5, 1), (5, 5), (20, 1), (20, 5))
    trials: int = 1000
    rules: tuple[str, ...] = tuple(RULES)
    samples: int = 8
    seed: int = 0
    within: str = "all"


@dataclass(frozen=True)
class Forecast:
    """A rule's statement about one target.

    Attributes:
        probability: p of the class that it chose.
        right: Whether that is the target's class.
        log_prob: log p of the target's class.
        milliseconds: CPU time that it took.
    """

    probability: float
    right: bool
    log_prob: float
    milliseconds: float


@dataclass(frozen=True)
class CalibrationRow:
    """Some trials of one task: the forecasts of each rule."""

    ways: int
    shots: int
    rules: dict[str, list[Forecast]]


@dataclass(frozen=True)
class Bin:
    """Forecasts of similar probability.

    Attributes:
        trials: n.
        probability: p̄, their mean probability.
        right: The share of them that were right.
        variance: The mean of p (1 − p), which is the variance of right answers if the forecasts are true.
    """

    trials: int
    probability: float
    right: float
    variance: float


@dataclass(frozen=True)
class RuleResult:
    """One rule on one task.

    Attributes:
        accuracy: Share of trials in which it was right.
        calibration_error: ECE, see `calibration_error`.
        error_by_chance: The expected ECE if all probabilities were true, see `error_by_chance`.
        log_prob: Mean log p of the right class.
        milliseconds: Median CPU time of a trial.
        reliability: Forecasts in bins of similar probability.
    """

    accuracy: Share
    calibration_error: float
    error_by_chance: float
    log_prob: Mean
    milliseconds: float
    reliability: list[Bin]


@dataclass(frozen=True)
class CalibrationTask:
    """One task: the number of items in memory, the share that guessing gets right, and each rule's result."""

    ways: int
    shots: int
    items: int
    chance: float
    rules: dict[str, RuleResult]


@dataclass(frozen=True)
class CalibrationResults:
    """All tasks, in their order."""

    tasks: list[CalibrationTask]


def calibration(
    trained: TrainedRun, options: CalibrationOptions
) -> Evaluation[CalibrationRow, CalibrationResults]:
    """Whether what is recognised with probability p is right in a share p of cases, for every rule.

    >>> trained = vma.evaluation.open_run(run)  # what vma.train returned
    >>> options = vma.evaluation.CalibrationOptions(tasks=((5, 1),), trials=4)
    >>> vma.evaluation.calibration(trained, options).results()
    CalibrationResults(tasks=[...])
    """
    model = trained.with_raw_memory("recognise")
    check_counts(options, trials=1, samples=1, seed=0)
    for name in options.rules:
        rule(name)
    parts = trial_blocks(trained.dataset, options.tasks, options.trials, options.seed, options.within)

    def part(number: int) -> CalibrationRow:
        block = parts[number]
        return CalibrationRow(block.ways, block.shots, task_forecasts(trained, model, options, block))

    about = {**plain(trained.about), **asdict(options), "protocol": "disjoint", "bins": BINS}
    return Evaluation("calibration", about, len(parts), part, CalibrationRow, summary)


def task_forecasts(
    trained: TrainedRun, model: VMA, options: CalibrationOptions, block: TrialBlock
) -> dict[str, list[Forecast]]:
    """What each rule said at every trial of a block."""
    forecasts: dict[str, list[Forecast]] = {name: [] for name in options.rules}
    for step in block.steps:
        episode = relabelled(block.draw(step).tensors(trained.device), block.ways, step)
        keyed = model.remember(episode.memory)
        for name, said in forecasts.items():
            source = trained.generator(options.seed, step)
            said.append(forecast(model, keyed, episode, rule(name), options.samples, source))
    return forecasts


def relabelled(episode: EpisodeTensors, ways: int, shift: int) -> EpisodeTensors:
    """The episode with labels counted from `shift`.

    Each trial has another shift, so that a rule that cannot choose and takes the first class is right by chance.
    """
    memory, targets = ((labels + shift) % ways for labels in (episode.memory_labels, episode.target_labels))
    return replace(episode, memory_labels=memory, target_labels=targets)


def forecast(
    model: VMA,
    keyed: KeyedMemory,
    episode: EpisodeTensors,
    chosen: Rule,
    samples: int,
    source: torch.Generator,
) -> Forecast:
    """p of the class that a rule chose, whether it is right, log p of the right class, and the CPU time."""
    x, labels, label = episode.targets.to(keyed.keys), episode.memory_labels.cpu(), int(episode.target_labels)
    began = time.process_time()  # of this process alone, however busy the machine is
    share = shares(look_up(model, keyed, x), labels.tolist(), chosen, samples, source).double().cpu()
    seconds = time.process_time() - began
    mass = class_mass(share, labels)[0].clamp(LEAST, 1.0)
    return Forecast(
        probability=float(mass.max()),
        right=int(mass.argmax()) == label,
        log_prob=math.log(float(mass[label])),
        milliseconds=round(1000 * seconds, 3),
    )


def summary(rows: list[CalibrationRow]) -> CalibrationResults:
    """For every task and every rule: accuracy, calibration, log p of the right class, and median milliseconds."""
    tasks = []
    for ways, shots in dict.fromkeys((row.ways, row.shots) for row in rows):
        chosen = [row.rules for row in rows if (row.ways, row.shots) == (ways, shots)]
        rules = {name: of_forecasts([each for part in chosen for each in part[name]]) for name in chosen[0]}
        tasks.append(CalibrationTask(ways, shots, ways * shots, 1 / ways, rules))
    return CalibrationResults(tasks)


def of_forecasts(forecasts: Sequence[Forecast]) -> RuleResult:
    """The numbers of one rule on one task."""
    right = [each.right for each in forecasts]
    bins = reliability([each.probability for each in forecasts], right)
    return RuleResult(
        accuracy=wilson(sum(right), len(right)),
        calibration_error=calibration_error(bins),
        error_by_chance=error_by_chance(bins),
        log_prob=mean_of([each.log_prob for each in forecasts]),
        milliseconds=median(each.milliseconds for each in forecasts),
        reliability=bins,
    )


# Calibration


def reliability(probabilities: Sequence[float], right: Sequence[bool]) -> list[Bin]:
    """The forecasts in BINS bins of equal width, without empty bins."""
    p, hits = np.array(probabilities), np.array(right, dtype=float)
    bins = np.minimum((p * BINS).astype(int), BINS - 1)
    chosen = [bins == number for number in range(BINS)]
    return [
        Bin(int(own.sum()), float(p[own].mean()), float(hits[own].mean()), float((p * (1 - p))[own].mean()))
        for own in chosen
        if own.any()
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """ECE = Σ_b n_b/N |right_b − p̄_b| (Guo et al. 2017): the mean gap between probabilities and shares."""
    return sum(b.trials * abs(b.right - b.probability) for b in bins) / sum(b.trials for b in bins)


def error_by_chance(bins: Sequence[Bin]) -> float:
    """E[ECE] ≈ Σ_b √(2/π Σ_i p_i (1 − p_i)) / N if all probabilities are true: even then the ECE is not 0."""
    spread = sum(math.sqrt(2 / math.pi * b.trials * b.variance) for b in bins)
    return spread / sum(b.trials for b in bins)
