"""Evaluations that several experiments share, beyond `vma evaluate`: learning curves and paired comparisons."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vma.evaluation import comparison
from vma.evaluation.episodes import NllOptions
from vma.evaluation.json_values import plain
from vma.evaluation.resumable import Evaluation
from vma.evaluation.trained_run import TrainedRun
from vma.reproduce.experiment import OpenRuns, PlannedEvaluation
from vma.runs.folder import Run

POINTS = 150  # of a curve
KEPT = ("nll", "kl_a", "kl_z", "entropy_q_a", "entropy_p_a", "valid_nll")


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """Means over a window of training; values that were not measured in it are None.

    Attributes:
        update: The last update of the window.
        seconds: Seconds of training up to there.
        nll: NLL on training images.
        kl_a: KL(q(a|x) ‖ p(a)).
        kl_z: E_q(a|x)[KL(q(z|m_a,x) ‖ p(z|m_a))].
        entropy_q_a: H(q(a|x)).
        entropy_p_a: H(p(a)).
        valid_nll: NLL on held-out classes or images.
    """

    update: int
    seconds: float
    nll: float | None = None
    kl_a: float | None = None
    kl_z: float | None = None
    entropy_q_a: float | None = None
    entropy_p_a: float | None = None
    valid_nll: float | None = None


@dataclass(frozen=True)
class CurveResults:
    """A learning curve.

    Attributes:
        rows: Its points.
        memory: |M| in training; 0 if there was no memory.
        K: Samples in training.
    """

    rows: list[CurvePoint]
    memory: int
    K: int


def planned_curve(key: str) -> PlannedEvaluation:
    """The learning curve of the run `key`."""
    return PlannedEvaluation((key,), lambda runs: learning_curve(runs.runs[key], runs.trained(key)))


def learning_curve(run: Run, trained: TrainedRun) -> Evaluation[CurveResults, CurveResults]:
    """The learning curve of a run: its metrics averaged over windows, so that few points remain."""
    lines = [line for line in run.metrics() if "nll" in line]  # awake
    about = {
        "model": plain(trained.about.model),
        "protocol": f"in training on {trained.settings.data.name}",
        "samples": trained.settings.samples,
        "lines": len(lines),
        "points": POINTS,
    }
    found = CurveResults(thinned(lines), memory_size(trained), trained.settings.samples)
    return Evaluation("curve", about, 1, lambda number: found, CurveResults, lambda rows: rows[0])


def thinned(lines: Sequence[Mapping[str, Any]], points: int = POINTS) -> list[CurvePoint]:
    """Means over at most `points` windows of equal size; each is placed at its last update."""
    size = max(1, math.ceil(len(lines) / points))
    return [window(lines[start : start + size]) for start in range(0, len(lines), size)]


def window(lines: Sequence[Mapping[str, Any]]) -> CurvePoint:
    """The mean of each metric over the lines that have it."""
    having = {key: [line[key] for line in lines if line.get(key) is not None] for key in KEPT}
    means = {key: round(sum(values) / len(values), 5) for key, values in having.items() if values}
    return CurvePoint(update=lines[-1]["update"], seconds=lines[-1]["seconds"], **means)


def memory_size(trained: TrainedRun) -> int:
    """|M| in training; 0 if there was no memory."""
    episode, model = trained.settings.episode, trained.settings.model
    if model.model == "vae":
        return 0
    if model.learned_items or episode.kind == "recall":
        return model.learned_items or episode.shots
    return episode.classes * episode.shots if episode.kind == "few-shot" else 0


def planned_comparison(keys: Sequence[str], options: NllOptions) -> PlannedEvaluation:
    """−log p(x|M) of the same targets under several runs, and the differences from the first, paired by target."""

    def prepare(runs: OpenRuns) -> Evaluation:
        return comparison({key: runs.trained(key) for key in keys}, options)

    return PlannedEvaluation(tuple(keys), prepare)
