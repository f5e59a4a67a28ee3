"""The worth of a trained model: likelihood, sweeps over the memory, classification, samples, where it looks."""

from vma.evaluation.answers import Answer, answer
from vma.evaluation.calibration import CalibrationOptions, CalibrationResults, calibration
from vma.evaluation.classification import ClassifyOptions, ClassifyResults, classify
from vma.evaluation.comparison import ComparisonResults, comparison
from vma.evaluation.episodes import NllOptions, NllResults, nll
from vma.evaluation.likelihood import bounds, measures
from vma.evaluation.novelty import NoveltyOptions, NoveltyResults, novelty
from vma.evaluation.posterior import PosteriorOptions, PosteriorResults, posterior
from vma.evaluation.recall import RecallOptions, RecallResults, recall
from vma.evaluation.resumable import Evaluation
from vma.evaluation.samples import SamplesOptions, SamplesResults, samples
from vma.evaluation.sweeps import ClassesOptions, ShotsOptions, SweepResults, classes_sweep, shots_sweep
from vma.evaluation.trained_run import TrainedRun, open_run

RESULTS: dict[str, type] = {  # of each evaluation, by its name
    "nll": NllResults,
    "classes": SweepResults,
    "shots": SweepResults,
    "classify": ClassifyResults,
    "calibration": CalibrationResults,
    "novelty": NoveltyResults,
    "posterior": PosteriorResults,
    "recall": RecallResults,
    "samples": SamplesResults,
    "comparison": ComparisonResults,
}

__all__ = [
    "RESULTS",
    "Answer",
    "CalibrationOptions",
    "CalibrationResults",
    "ClassesOptions",
    "ClassifyOptions",
    "ClassifyResults",
    "ComparisonResults",
    "Evaluation",
    "NllOptions",
    "NllResults",
    "NoveltyOptions",
    "NoveltyResults",
    "PosteriorOptions",
    "PosteriorResults",
    "RecallOptions",
    "RecallResults",
    "SamplesOptions",
    "SamplesResults",
    "ShotsOptions",
    "SweepResults",
    "TrainedRun",
    "answer",
    "bounds",
    "calibration",
    "classes_sweep",
    "classify",
    "comparison",
    "measures",
    "nll",
    "novelty",
    "open_run",
    "posterior",
    "recall",
    "samples",
    "shots_sweep",
]  # fmt: skip
