"""`calibration`: whether the probabilities of recognition mean what they say, by each of its rules."""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np

from vma.addressing import class_mass
from vma.checks import check_counts
from vma.data.episodes import EpisodeTensors
from vma.evaluation.classification import TrialBlock, trial_blocks
from vma.evaluation.resumable import Evaluation, Row
from vma.evaluation.statistics import mean_of, wilson
from vma.evaluation.trained_run import TrainedRun
from vma.fewshot.recognition import RULES, rule, shares
from vma.memory import KeyedMemory

BINS = 10  # of equal width
LEAST = float(np.finfo(np.float32).tiny)  # a probability that was rounded to 0 counts as this


@dataclass(frozen=True)
class CalibrationOptions:
    """How often a rule of recognition is right about targets of unseen classes, and how sure it says it is.

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


def calibration(trained: TrainedRun, options: CalibrationOptions) -> Evaluation:
    """The evaluation that `options` ask for."""
    trained.with_raw_memory("recognise")
    check_counts(options, trials=1, samples=1, seed=0)
    for name in options.rules:
        rule(name)
    parts = trial_blocks(trained.dataset, options.tasks, options.trials, options.seed, options.within)

    def part(number: int) -> Row:
        block = parts[number]
        return {"ways": block.ways, "shots": block.shots, "rules": task_forecasts(trained, options, block)}

    about = {**trained.about, **asdict(options), "protocol": "disjoint", "bins": BINS}
    return Evaluation("calibration", about, len(parts), part, summary)


def task_forecasts(
    trained: TrainedRun, options: CalibrationOptions, block: TrialBlock
) -> dict[str, list[Row]]:
    """What each rule said at every trial of a block."""
    forecasts: dict[str, list[Row]] = {name: [] for name in options.rules}
    for step in block.steps:
        episode = block.draw(step).tensors(trained.device)
        keyed = trained.with_raw_memory("recognise").remember(episode.memory)
        for name, rows in forecasts.items():
            rows.append(forecast(trained, options, keyed, episode, block.ways, step, name))
    return forecasts


def forecast(
    trained: TrainedRun,
    options: CalibrationOptions,
    keyed: KeyedMemory,
    episode: EpisodeTensors,
    ways: int,
    step: int,
    name: str,
) -> Row:
    """p of the class that one rule chose, whether that is right, log p of the right one, and what it cost.

    Labels are counted from another number at each step: a rule that cannot choose is right by chance only.
    """
    x, source = episode.targets.to(keyed.keys), trained.generator(options.seed, step)
    labels = (episode.memory_labels.cpu() + step) % ways
    began = time.process_time()  # of this process alone, whatever else the machine is doing
    share = (
        shares(
            trained.with_raw_memory("recognise"),
            keyed,
            labels.tolist(),
            x,
            rule(name),
            options.samples,
            source,
        )
        .double()
        .cpu()
    )
    seconds = time.process_time() - began
    mass = class_mass(share, labels, ways)[0].clamp(LEAST, 1.0)
    label = (int(episode.target_labels) + step) % ways
    return {
        "probability": float(mass.max()),
        "right": int(mass.argmax()) == label,
        "log_prob": math.log(float(mass[label])),
        "milliseconds": round(1000 * seconds, 3),
    }


def summary(rows: list[Row]) -> dict[str, Any]:
    """Of every task by every rule: accuracy, calibration, log p of the right class, and median milliseconds."""
    tasks = []
    for ways, shots in dict.fromkeys((row["ways"], row["shots"]) for row in rows):
        chosen = [row["rules"] for row in rows if (row["ways"], row["shots"]) == (ways, shots)]
        rules = {name: of_forecasts([each for part in chosen for each in part[name]]) for name in chosen[0]}
        tasks.append(
            {"ways": ways, "shots": shots, "items": ways * shots, "chance": 1 / ways, "rules": rules}
        )
    return {"tasks": tasks}


def of_forecasts(forecasts: Sequence[Row]) -> dict[str, Any]:
    """The numbers of one rule on one task."""
    right = [each["right"] for each in forecasts]
    bins = reliability([each["probability"] for each in forecasts], right)
    return {
        "accuracy": asdict(wilson(sum(right), len(right))),
        "calibration_error": calibration_error(bins),
        "error_by_chance": error_by_chance(bins),
        "log_prob": asdict(mean_of([each["log_prob"] for each in forecasts])),
        "milliseconds": median(each["milliseconds"] for each in forecasts),
        "reliability": [asdict(each) for each in bins],
    }


# Calibration


@dataclass(frozen=True)
class Bin:
    """Forecasts of about the same probability.

    Attributes:
        trials: n.
        probability: p̄, their mean probability.
        right: The share of them that was right.
        variance: The mean of p (1 − p), what right answers vary by where forecasts are true.
    """

    trials: int
    probability: float
    right: float
    variance: float


def reliability(probabilities: Sequence[float], right: Sequence[bool]) -> list[Bin]:
    """The forecasts in BINS bins of equal width, those that hold any."""
    p, hits = np.array(probabilities), np.array(right, dtype=float)
    bins = np.minimum((p * BINS).astype(int), BINS - 1)
    chosen = [bins == number for number in range(BINS)]
    return [
        Bin(int(own.sum()), float(p[own].mean()), float(hits[own].mean()), float((p * (1 - p))[own].mean()))
        for own in chosen
        if own.any()
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """ECE = Σ_b n_b/N |right_b − p̄_b| (Guo et al. 2017): how far probabilities are from shares, on average."""
    return sum(b.trials * abs(b.right - b.probability) for b in bins) / sum(b.trials for b in bins)


def error_by_chance(bins: Sequence[Bin]) -> float:
    """E[ECE] ≈ Σ_b √(2/π Σ_i p_i (1 − p_i)) / N of a forecaster whose probabilities are true: no ECE is 0."""
    spread = sum(math.sqrt(2 / math.pi * b.trials * b.variance) for b in bins)
    return spread / sum(b.trials for b in bins)
