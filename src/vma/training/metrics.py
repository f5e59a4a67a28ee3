"""What a run shows of itself: a window of updates, averaged."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vma.bounds import decomposition, effective_sample_size
from vma.estimators import Estimate

NAMES = (
    "nll", "reconstruction", "kl_a", "kl_z", "entropy_q_a", "entropy_p_a", "effective_samples", "gradient_norm",
)  # fmt: skip


class Window:
    """Sums of metrics since the last line; part of a checkpoint, so that a resumed run writes the same lines."""

    def __init__(self) -> None:
        self.sums = torch.zeros(len(NAMES) + 1, dtype=torch.float64)

    @torch.no_grad()
    def add(self, estimates: Sequence[Estimate], gradient_norm: Tensor) -> None:
        """Count one update, made of one or more episodes."""
        means = torch.stack([episode_means(estimate) for estimate in estimates]).mean(0)
        self.sums += torch.cat([means, gradient_norm.double().cpu().reshape(1), torch.ones(1).double()])

    def row(self, update: int) -> dict[str, Any]:
        """The means since the last row; starts a new window."""
        means = (self.sums[:-1] / self.sums[-1]).tolist()
        self.sums.zero_()
        return {"update": update, **dict(zip(NAMES, means, strict=True))}


def episode_means(estimate: Estimate) -> Float[Tensor, "metrics"]:
    """All metrics but the gradient's norm, averaged over the targets of an episode."""
    terms, parts = estimate.terms, decomposition(estimate.terms)
    zero = estimate.bound.new_zeros(())
    values = (
        -estimate.bound.mean(), parts.reconstruction.mean(), parts.kl_a.mean(), parts.kl_z.mean(),
        zero if terms.q_a is None else terms.q_a.entropy().mean(),
        zero if terms.p_a is None else terms.p_a.entropy(),
        effective_sample_size(terms).mean(),
    )  # fmt: skip
    return torch.stack([value.double() for value in values]).cpu()
