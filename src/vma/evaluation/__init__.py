"""What a trained model is worth: likelihood, sweeps over the memory, classification, samples, where it looks."""

from vma.evaluation.calibration import CalibrationQuestion, calibration
from vma.evaluation.classification import ClassificationQuestion, class_log_likelihood, classify
from vma.evaluation.episodes import EpisodeQuestion, nll
from vma.evaluation.likelihood import bounds, measures
from vma.evaluation.novelty import NoveltyQuestion, novelty
from vma.evaluation.posterior import PosteriorQuestion, posterior
from vma.evaluation.results import answer
from vma.evaluation.samples import SamplesQuestion, samples
from vma.evaluation.subject import Subject, open_subject
from vma.evaluation.sweeps import ClassesQuestion, ShotsQuestion, classes_sweep, shots_sweep
from vma.evaluation.units import Evaluation

__all__ = [
    "CalibrationQuestion", "ClassesQuestion", "ClassificationQuestion", "EpisodeQuestion", "Evaluation",
    "NoveltyQuestion", "PosteriorQuestion", "SamplesQuestion", "ShotsQuestion", "Subject", "answer", "bounds",
    "calibration", "class_log_likelihood", "classes_sweep", "classify", "measures", "nll", "novelty",
    "open_subject", "posterior", "samples", "shots_sweep",
]  # fmt: skip
