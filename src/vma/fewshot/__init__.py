"""Use a trained model: remember a few images, then imagine, recognise, score and explain others."""

from vma.fewshot.explanation import ExplainedItem, Explanation
from vma.fewshot.image_memory import ImageMemory
from vma.fewshot.images import OPTIONS
from vma.fewshot.imagined import Imagined
from vma.fewshot.items import Item
from vma.fewshot.large_memory import LargeMemory
from vma.fewshot.novelty import Norm
from vma.fewshot.recognised import Recognition, Recognitions
from vma.fewshot.scores import Score
from vma.fewshot.trained import TrainedModel, from_pretrained, load

__all__ = [
    "OPTIONS",
    "ExplainedItem",
    "Explanation",
    "ImageMemory",
    "Imagined",
    "Item",
    "LargeMemory",
    "Norm",
    "Recognition",
    "Recognitions",
    "Score",
    "TrainedModel",
    "from_pretrained",
    "load",
]
