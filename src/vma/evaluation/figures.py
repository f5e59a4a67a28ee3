"""The figures of answers, as PNG: what the answers hold is handed to `vma.plotting`."""

from collections import defaultdict
from collections.abc import Sequence

from vma.evaluation.answers import Answer
from vma.evaluation.calibration import Bin, CalibrationResults
from vma.evaluation.novelty import MEASURES, NoveltyResults
from vma.evaluation.statistics import wilson
from vma.fewshot.recognition import DEFAULT
from vma.plotting.calibration import Dot, reliability_png
from vma.plotting.novelty import novelty_png


def draw_novelty(answer: Answer[NoveltyResults]) -> bytes:
    """How well new targets are told from known ones, and whether the promised share of false alarms is kept."""
    return novelty_png(answer.to_json(), MEASURES)


def draw_calibration(answer: Answer[CalibrationResults]) -> bytes:
    """The reliability diagram of every rule, over all tasks."""
    about, tasks = answer.about, answer.results.tasks
    bins = {name: [task.rules[name].reliability for task in tasks] for name in about["rules"]}
    shown = {name: dots(merge(own, about["bins"])) for name, own in bins.items()}
    return reliability_png(answer.to_json(), shown, DEFAULT)


def dots(merged: Sequence[tuple[int, float, int]]) -> list[Dot]:
    """The bins that `merge` returns, each with its share of right answers and the 95 % interval."""
    shares = [(trials, probability, wilson(right, trials)) for trials, probability, right in merged]
    return [Dot(trials, probability, own.value, own.low, own.high) for trials, probability, own in shares]


def merge(tasks: Sequence[Sequence[Bin]], bins: int) -> list[tuple[int, float, int]]:
    """Trials, mean probability and number of right answers in each of `bins` bins, over all tasks."""
    sums: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for own in (each for task in tasks for each in task):
        total = sums[min(int(own.probability * bins), bins - 1)]
        for place, value in enumerate((1.0, own.probability, own.right)):
            total[place] += own.trials * value
    return [(round(n), p / n, round(right)) for n, p, right in (sums[place] for place in sorted(sums))]
