"""Use a trained model: remember a few images, then imagine, recognise, score and explain others."""

from vma.fewshot.explanation import ExplainedItem, Explanation
from vma.fewshot.image_memory import ImageMemory
from vma.fewshot.images import OPTIONS
from vma.fewshot.imagination import Imagined
from vma.fewshot.novelty import Norm
from vma.fewshot.recognition import Recognition
from vma.fewshot.scores import Score
from vma.fewshot.trained import TrainedModel, load

__all__ = [
    "OPTIONS",
    "ExplainedItem",
    "Explanation",
    "ImageMemory",
    "Imagined",
    "Norm",
    "Recognition",
    "Score",
    "TrainedModel",
    "load",
]
