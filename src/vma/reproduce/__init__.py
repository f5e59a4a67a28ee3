"""Every figure, table and statement of the paper again, each by one name."""

from vma.reproduce.experiment import Experiment, Needed, Scale
from vma.reproduce.page import write_pages
from vma.reproduce.pipeline import read_collection, reproduce
from vma.reproduce.registry import EXPERIMENTS, find_experiment
from vma.reproduce.rows import Row
from vma.reproduce.training import Place

__all__ = [
    "EXPERIMENTS", "Experiment", "Needed", "Place", "Row", "Scale", "find_experiment", "read_collection",
    "reproduce", "write_pages",
]  # fmt: skip
