"""What a trained model is worth: likelihood, sweeps over the memory, classification, samples, where it looks."""

from vma.evaluation.answers import answer
from vma.evaluation.calibration import CalibrationOptions, calibration
from vma.evaluation.classification import ClassifyOptions, class_log_likelihood, classify
from vma.evaluation.episodes import NllOptions, nll
from vma.evaluation.likelihood import bounds, measures
from vma.evaluation.novelty import NoveltyOptions, novelty
from vma.evaluation.posterior import PosteriorOptions, posterior
from vma.evaluation.resumable import Evaluation
from vma.evaluation.samples import SamplesOptions, samples
from vma.evaluation.sweeps import ClassesOptions, ShotsOptions, classes_sweep, shots_sweep
from vma.evaluation.trained_run import TrainedRun, open_run

__all__ = [
    "CalibrationOptions",
    "ClassesOptions",
    "ClassifyOptions",
    "Evaluation",
    "NllOptions",
    "NoveltyOptions",
    "PosteriorOptions",
    "SamplesOptions",
    "ShotsOptions",
    "TrainedRun",
    "answer",
    "bounds",
    "calibration",
    "class_log_likelihood",
    "classes_sweep",
    "classify",
    "measures",
    "nll",
    "novelty",
    "open_run",
    "posterior",
    "samples",
    "shots_sweep",
]  # fmt: skip
