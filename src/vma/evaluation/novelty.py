"""`novelty`: whether targets of classes that are not in memory are told from those of classes that are."""

from dataclasses import asdict, dataclass

import numpy as np
import torch
from jaxtyping import Float

from vma.checks import check_counts
from vma.data.episodes import EpisodeTensors
from vma.data.samplers import EpisodeSampler
from vma.errors import InputError
from vma.evaluation.json_values import plain
from vma.evaluation.resumable import Evaluation, TargetResults
from vma.evaluation.statistics import Mean, area_under_curve, mean_of
from vma.evaluation.trained_run import TrainedRun
from vma.fewshot.lookup import look_up
from vma.fewshot.novelty import FEWEST, UNUSUAL, Measures, t_limit
from vma.fewshot.scores import score, usual
from vma.model import VMA

MEASURES = {  # larger values mean newer
    "joined": "all three, joined",
    "angle": "angle to the nearest item",
    "odds": "odds of turned copies",
    "surprise": "surprise",
    "entropy": "entropy of q(a|x)",
    "nll": "−log p(x|M)",
}
LEVELS = np.arange(101) / 100  # shares of false alarms at which curves are given
PROMISED = np.arange(1, 21) / 100  # levels at which promised false alarms are compared with real ones
EDGES = np.arange(-4, 12.5, 0.5)  # of the histogram


@dataclass(frozen=True)
class NoveltyOptions:
    """How well targets of absent classes are told from known ones, and the errors at the threshold that users get.

    Attributes:
        episodes: Number of episodes, each with a memory of its own.
        classes: Classes in memory.
        absent: Further classes that are not in memory, so that their targets are new.
        shots: Items of each class in memory.
        targets: Targets of each class.
        samples: K of log p(x|M).
        seed: Decides episodes and samples.
    """

    episodes: int = 40
    classes: int = 8
    absent: int = 8
    shots: int = 4
    targets: int = 4
    samples: int = 64
    seed: int = 0


@dataclass(frozen=True)
class NoveltyRow:
    """One episode: a value of each of MEASURES for every target.

    Attributes:
        new: Whether the target is of an absent class.
        joined: All three measures, joined.
        angle: Angle to the nearest item, in the matching space.
        odds: Odds of turned copies.
        surprise: log p(x|M) / log p(x|{x}).
        entropy: H(q(a|x)).
        nll: −log p(x|M).
        p_value: The probability that an image of a class in memory is at least as unusual.
        limit: The joined measure above which users of this memory are told that an image is novel.
    """

    new: list[bool]
    joined: list[float]
    angle: list[float]
    odds: list[float]
    surprise: list[float]
    entropy: list[float]
    nll: list[float]
    p_value: list[float | None]
    limit: float

    def split(self, name: str) -> tuple[Float[np.ndarray, "known"], Float[np.ndarray, "new"]]:
        """A measure of the known targets, and of the new ones."""
        values, new = np.array(getattr(self, name), dtype=float), np.array(self.new, dtype=bool)
        return values[~new], values[new]


@dataclass(frozen=True)
class FlaggedShare:
    """A share of targets with its standard error over memories, and its 95 % interval."""

    value: float
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class KeptPromise:
    """The real share of false alarms where a share `level` was promised."""

    level: float
    value: float
    error: float
    low: float
    high: float


@dataclass(frozen=True)
class Histogram:
    """The numbers of known and of new targets whose joined measure lies between each two edges."""

    edges: list[float]
    known: list[int]
    new: list[int]


@dataclass(frozen=True, kw_only=True)
class NoveltyResults(TargetResults):
    """How well new targets are told from known ones; areas and curves exist for each of MEASURES.

    Attributes:
        areas: The probability that, of a known and a new target of one memory, the new one has the larger measure.
        false_alarms: Share of known targets that are called novel.
        found: Share of new targets that are called novel.
        missed: Share of new targets that are not called novel.
        limit: The joined measure above which an image is called novel, in the first memory.
        curves: Share of new targets found at each share of false alarms in LEVELS.
        promised: Real false alarms at every level in PROMISED.
        histogram: Histogram of the joined measure.
    """

    areas: dict[str, Mean]
    false_alarms: FlaggedShare
    found: FlaggedShare
    missed: FlaggedShare
    limit: float
    curves: dict[str, list[float]]
    promised: list[KeptPromise]
    histogram: Histogram


def novelty(trained: TrainedRun, options: NoveltyOptions) -> Evaluation[NoveltyRow, NoveltyResults]:
    """How well targets of classes that are not in memory are told from those of classes that are.

    >>> trained = vma.evaluation.open_run(run)  # what vma.train returned
    >>> options = vma.evaluation.NoveltyOptions(episodes=2, classes=4, absent=2, shots=3, targets=1, samples=4)
    >>> vma.evaluation.novelty(trained, options).results()
    NoveltyResults(...)
    """
    check_counts(options, episodes=2, classes=1, absent=1, shots=2, targets=1, samples=1, seed=0)
    model = trained.with_raw_memory("tell what is new")
    if options.classes * options.shots < FEWEST:
        raise InputError(f"Novelty needs {FEWEST} or more items in memory: ask for more classes or shots.")
    sampler = EpisodeSampler(
        trained.dataset, classes=options.classes + options.absent, targets=options.targets,
        shots=options.shots, seed=options.seed,
    )  # fmt: skip

    def part(number: int) -> NoveltyRow:
        return scored(model, sampler.episode(number).tensors(trained.device), options)

    about = {**plain(trained.about), **asdict(options), "protocol": "disjoint", "level": UNUSUAL}
    return Evaluation("novelty", about, options.episodes, part, NoveltyRow, summary)


def scored(model: VMA, episode: EpisodeTensors, options: NoveltyOptions) -> NoveltyRow:
    """All measures of every target of an episode, as a user of that memory gets them."""
    kept = episode.memory_labels < options.classes
    keyed = model.remember(episode.memory[kept])
    labels = tuple(str(label) for label in episode.memory_labels[kept].tolist())
    norm = usual(model, keyed, labels, options.samples, options.seed)
    targets = episode.targets.to(keyed.keys)
    looks = [look_up(model, keyed, x) for x in targets.split(1)]
    found = [score(look, norm, options.samples, options.seed) for look in looks]
    assert norm.rule is not None
    measured = [Measures(s.surprise, s.angle, s.odds) for s in found if s.odds is not None]
    with torch.no_grad():
        entropy = model.posterior(targets, keyed).entropy()
    return NoveltyRow(
        new=(episode.target_labels >= options.classes).tolist(),
        joined=[norm.rule.statistic(each) for each in measured],
        angle=[each.angle for each in measured],
        odds=[each.odds for each in measured],
        surprise=[each.surprise for each in measured],
        entropy=entropy.double().tolist(),
        nll=[-each.log_p for each in found],
        p_value=[each.p_value for each in found],
        limit=t_limit(UNUSUAL, norm.rule.freedom),
    )


def summary(rows: list[NoveltyRow]) -> NoveltyResults:
    """Areas under the curve, false alarms, shares of new targets found and missed, and data to draw.

    Errors and intervals are over memories, because the targets of one memory share its threshold.
    """
    found = flagged(rows, UNUSUAL, new=True)
    return NoveltyResults(
        number_of_targets=sum(len(row.new) for row in rows),
        areas={name: mean_of([area(row, name) for row in rows]) for name in MEASURES},
        false_alarms=flagged(rows, UNUSUAL, new=False),
        found=found,
        missed=FlaggedShare(1 - found.value, found.error, 1 - found.high, 1 - found.low),
        limit=rows[0].limit,
        curves={name: np.mean([curve(row, name) for row in rows], axis=0).tolist() for name in MEASURES},
        promised=[
            KeptPromise(level, **asdict(flagged(rows, level, new=False))) for level in PROMISED.tolist()
        ],
        histogram=histogram(rows),
    )


def area(row: NoveltyRow, name: str) -> float:
    """The area under the curve of a measure in one episode."""
    known, new = row.split(name)
    return area_under_curve(known.tolist(), new.tolist())


def curve(row: NoveltyRow, name: str) -> Float[np.ndarray, "levels"]:
    """The share of an episode's new targets found at each share of false alarms in LEVELS."""
    known, new = row.split(name)
    limits = np.unique(np.concatenate((known, new)))[::-1]
    false, true = ([0.0, *((values >= limits[:, None]).mean(1))] for values in (known, new))
    return np.interp(LEVELS, false, [max(true[: i + 1]) for i in range(len(true))])


def flagged(rows: list[NoveltyRow], level: float, *, new: bool) -> FlaggedShare:
    """The share of known or of new targets whose p-value is below `level`, with its error and 95 % interval."""
    shares = mean_of(
        [float(p < level) for row in rows for p in row.split("p_value")[new]],
        [number for number, row in enumerate(rows) for _ in row.split("p_value")[new]],
    )
    low, high = shares.value - 1.96 * shares.error, shares.value + 1.96 * shares.error
    return FlaggedShare(shares.value, shares.error, low=max(0.0, low), high=min(1.0, high))


def histogram(rows: list[NoveltyRow]) -> Histogram:
    """The numbers of known and new targets between each two of EDGES; the outermost bins take all beyond."""
    pairs = [row.split("joined") for row in rows]
    known, new = (np.concatenate(values).clip(EDGES[0], EDGES[-1]) for values in zip(*pairs, strict=True))
    counts = [np.histogram(values, EDGES)[0].tolist() for values in (known, new)]
    return Histogram(EDGES.tolist(), *counts)
