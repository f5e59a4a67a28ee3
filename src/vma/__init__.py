"""Variational memory addressing in generative models (Bornschein, Mnih, Zoran, Rezende, 2017).

Names and modules are imported when they are first used: `import vma` and `vma --help` do not wait for torch.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vma import data, parts
    from vma.addressing import AddressDistribution
    from vma.bounds import (
        BoundTerms,
        Decomposition,
        decomposition,
        effective_sample_size,
        elbo,
        multi_sample_bound,
    )
    from vma.build import build_model, build_vma
    from vma.config import ModelConfig, paper_mlp
    from vma.errors import InputError
    from vma.estimators import ESTIMATORS, Estimate, Estimator, estimate
    from vma.fewshot import from_pretrained, load
    from vma.generative_model import GenerativeModel, Samples
    from vma.memory import KeyedMemory, Memory
    from vma.model import VMA
    from vma.storage import load_model, save_model
    from vma.training.api import resume, sleep, train

__version__ = "0.2.0"
__all__ = [
    "ESTIMATORS",
    "VMA",
    "AddressDistribution",
    "BoundTerms",
    "Decomposition",
    "Estimate",
    "Estimator",
    "GenerativeModel",
    "InputError",
    "KeyedMemory",
    "Memory",
    "ModelConfig",
    "Samples",
    "build_model",
    "build_vma",
    "data",
    "decomposition",
    "effective_sample_size",
    "elbo",
    "estimate",
    "from_pretrained",
    "load",
    "load_model",
    "multi_sample_bound",
    "paper_mlp",
    "parts",
    "resume",
    "save_model",
    "sleep",
    "train",
]

HOMES = {
    "vma.addressing": ("AddressDistribution",),
    "vma.bounds": (
        "BoundTerms", "Decomposition", "decomposition", "effective_sample_size", "elbo", "multi_sample_bound",
    ),
    "vma.build": ("build_model", "build_vma"),
    "vma.config": ("ModelConfig", "paper_mlp"),
    "vma.errors": ("InputError",),
    "vma.estimators": ("ESTIMATORS", "Estimate", "Estimator", "estimate"),
    "vma.memory": ("KeyedMemory", "Memory"),
    "vma.generative_model": ("GenerativeModel", "Samples"),
    "vma.model": ("VMA",),
    "vma.storage": ("load_model", "save_model"),
    "vma.fewshot": ("from_pretrained", "load"),
    "vma.training.api": ("resume", "sleep", "train"),
}  # fmt: skip
HOME_OF = {name: home for home, names in HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """The public name `name`, from the module it lives in."""
    if name not in HOME_OF:
        return module_of(name)
    value = getattr(importlib.import_module(HOME_OF[name]), name)
    globals()[name] = value
    return value


def module_of(name: str) -> Any:
    """The module `vma.name`, such as `vma.data`; raises an AttributeError if there is none."""
    whole = f"vma.{name}"
    if name.startswith("_") or importlib.util.find_spec(whole) is None:
        raise AttributeError(f"module 'vma' has no attribute {name!r}")
    return importlib.import_module(whole)


def __dir__() -> list[str]:
    """All public names."""
    return sorted([*__all__, "__version__"])
