"""Datasets: one loader each, all of them returning a `Dataset`."""

from vma.data.contact_sheet import contact_sheet
from vma.data.dataset import Dataset
from vma.data.embedded import GlyphOptions
from vma.data.folder import FolderOptions
from vma.data.randomness import binarize
from vma.data.registry import DATASETS, load_dataset

__all__ = [
    "DATASETS",
    "Dataset",
    "FolderOptions",
    "GlyphOptions",
    "binarize",
    "contact_sheet",
    "load_dataset",
]
