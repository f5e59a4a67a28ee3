"""Use a trained model: remember a few images, then imagine, recognise, score and explain others."""

from vma.use.explanation import ExplainedItem, Explanation
from vma.use.images import OPTIONS
from vma.use.imagination import Imagined
from vma.use.novelty import Norm
from vma.use.recognition import Recognition
from vma.use.recollection import Recollection
from vma.use.scores import Score
from vma.use.trained import TrainedModel, load

__all__ = [
    "OPTIONS",
    "ExplainedItem",
    "Explanation",
    "Imagined",
    "Norm",
    "Recognition",
    "Recollection",
    "Score",
    "TrainedModel",
    "load",
]
