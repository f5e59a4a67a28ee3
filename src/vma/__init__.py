"""Variational memory addressing in generative models (Bornschein, Mnih, Zoran, Rezende, 2017)."""

from vma.addressing import AddressDistribution
from vma.bounds import (
    BoundTerms,
    Decomposition,
    decomposition,
    effective_sample_size,
    elbo,
    multi_sample_bound,
)
from vma.config import ModelConfig, paper_mlp
from vma.errors import InputError
from vma.estimators import ESTIMATORS, Estimate, estimate
from vma.memory import Memory
from vma.model import VMA, Samples
from vma.storage import load_model, save_model

__version__ = "0.1.0"
__all__ = [
    "ESTIMATORS",
    "VMA",
    "AddressDistribution",
    "BoundTerms",
    "Decomposition",
    "Estimate",
    "InputError",
    "Memory",
    "ModelConfig",
    "Samples",
    "decomposition",
    "effective_sample_size",
    "elbo",
    "estimate",
    "load_model",
    "multi_sample_bound",
    "paper_mlp",
    "save_model",
]
