"""Every figure, table and statement of the paper again, each by one name."""

from vma.reproduce.experiment import Experiment, Needed, Scale
from vma.reproduce.findings import Finding
from vma.reproduce.page import write_pages
from vma.reproduce.pipeline import read_collection, reproduce
from vma.reproduce.registry import EXPERIMENTS, find_experiment
from vma.reproduce.run_store import RunStore

__all__ = [
    "EXPERIMENTS", "Experiment", "Finding", "Needed", "RunStore", "Scale", "find_experiment", "read_collection",
    "reproduce", "write_pages",
]  # fmt: skip
