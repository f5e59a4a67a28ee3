"""Bounds of many reads, for which compiled loops take the place of layers, and when those are called."""

from types import ModuleType
from typing import Any

import pytest
import torch

from tests.helpers.oracles import distributions, episode, reference_terms
from vma import ModelConfig
from vma.bounds import BoundTerms
from vma.build import build_vma
from vma.kernels import compiled
from vma.reads import independent


def rows_of_calls(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, argument: int) -> list[int]:
    """From now on, how many rows that argument of a function had in each of its calls."""
    found: list[int] = []
    real = getattr(module, name)

    def noted(*given: Any) -> Any:
        found.append(len(given[argument]))
        return real(*given)

    monkeypatch.setattr(module, name, noted)
    return found


@torch.no_grad()
def terms_of_many_reads(
    config: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> tuple[BoundTerms, BoundTerms]:
    """The terms of 3 targets with 40 reads each, which are many here, in chunks of 50; and the reference's."""
    monkeypatch.setattr(compiled, "MANY", 3 * 40)
    model = build_vma(config)
    x, memory = episode(config, 3, 4)
    chosen, p_a, q_a = distributions(model, x, memory)
    reads, noise = independent(q_a, 40, chosen), torch.randn(3, 40, config.latent)
    fast = model.terms_at(x, chosen, p_a, q_a, reads, noise, chunk=50)
    return fast, reference_terms(model, x, chosen, p_a, q_a, reads.addresses, noise)
