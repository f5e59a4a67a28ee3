"""Datasets, each loaded to a `Dataset`, and samplers that draw an `Episode` for every step from one.

Samplers are imported when they are first used, because importing them waits for torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

from vma.data.contact_sheet import contact_sheet
from vma.data.dataset import Dataset, dataset_of
from vma.data.glyphs import GlyphOptions
from vma.data.picture import FolderOptions
from vma.data.randomness import binarize
from vma.data.registry import DATASETS, Entry, load_dataset, register_dataset

if TYPE_CHECKING:
    from vma.data.episodes import Episode, EpisodeTensors, Sampler
    from vma.data.samplers import BatchSampler, EpisodeSampler, RecallSampler, SequenceSampler

__all__ = [
    "DATASETS",
    "BatchSampler",
    "Dataset",
    "Entry",
    "Episode",
    "EpisodeSampler",
    "EpisodeTensors",
    "FolderOptions",
    "GlyphOptions",
    "RecallSampler",
    "Sampler",
    "SequenceSampler",
    "binarize",
    "contact_sheet",
    "dataset_of",
    "load_dataset",
    "register_dataset",
]

HOMES = {
    "episodes": ("Episode", "EpisodeTensors", "Sampler"),
    "samplers": ("BatchSampler", "EpisodeSampler", "RecallSampler", "SequenceSampler"),
}


def __getattr__(name: str) -> Any:
    """An episode or a sampler, from the module it lives in."""
    for home, names in HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"vma.data.{home}"), name)
    raise AttributeError(f"module 'vma.data' has no attribute {name!r}")
