"""What a run reports about itself: metrics averaged over a window of updates."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vma.bounds import decomposition, effective_sample_size
from vma.dreams import DreamRecognition
from vma.estimators import Estimate

AWAKE = ("nll", "reconstruction", "kl_a", "kl_z", "entropy_q_a", "entropy_p_a", "effective_samples")
DREAMS = ("dream_log_q_a", "dream_found", "dream_class_found", "dream_kl_p_a")


class Window:
    """Sums of metrics since the last line; part of a checkpoint, so that a resumed run writes the same lines."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.sums = torch.zeros(len(self.names) + 1, dtype=torch.float64)

    @torch.no_grad()
    def add(self, means: Float[Tensor, "metrics"]) -> None:
        """Count one update."""
        self.sums += torch.cat([means, torch.ones(1).double()])

    def row(self, update: int) -> dict[str, Any]:
        """The means since the last row, without those that are NaN; a new window begins."""
        means = (self.sums[:-1] / self.sums[-1]).tolist()
        self.sums.zero_()
        known = {name: mean for name, mean in zip(self.names, means, strict=True) if not math.isnan(mean)}
        return {"update": update, **known}


@torch.no_grad()
def episode_means(estimate: Estimate) -> Float[Tensor, "metrics"]:
    """The metrics `AWAKE`, averaged over the targets of an episode."""
    terms, parts = estimate.terms, decomposition(estimate.terms)
    zero = estimate.bound.new_zeros(())
    values = (
        -estimate.bound.mean(), parts.reconstruction.mean(), parts.kl_a.mean(), parts.kl_z.mean(),
        zero if terms.q_a is None else terms.q_a.entropy().mean(),
        zero if terms.p_a is None else terms.p_a.entropy(),
        effective_sample_size(terms).mean(),
    )  # fmt: skip
    return torch.stack([value.double() for value in values]).cpu()


@torch.no_grad()
def dream_means(recognised: DreamRecognition | None) -> Float[Tensor, "metrics"]:
    """The metrics `DREAMS`, averaged over dreams; NaN if nothing was dreamt."""
    if recognised is None:
        return torch.full((len(DREAMS),), torch.nan, dtype=torch.float64)
    values = (recognised.log_q_a, recognised.found, recognised.found_class, recognised.kl_p_a)
    return torch.stack([value.double().mean() for value in values]).cpu()
