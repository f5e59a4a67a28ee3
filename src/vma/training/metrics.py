"""What a run shows of itself: a window of updates, averaged."""

from typing import Any

import torch
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
    def add(self, estimate: Estimate, gradient_norm: Tensor) -> None:
        """Count one update."""
        terms, parts = estimate.terms, decomposition(estimate.terms)
        zero = torch.zeros(())
        values = (
            -estimate.bound.mean(), parts.reconstruction.mean(), parts.kl_a.mean(), parts.kl_z.mean(),
            zero if terms.q_a is None else terms.q_a.entropy().mean(),
            zero if terms.p_a is None else terms.p_a.entropy(),
            effective_sample_size(terms).mean(), gradient_norm, torch.ones(()),
        )  # fmt: skip
        self.sums += torch.stack([value.double().cpu() for value in values])

    def row(self, update: int) -> dict[str, Any]:
        """The means since the last row; starts a new window."""
        means = (self.sums[:-1] / self.sums[-1]).tolist()
        self.sums.zero_()
        return {"update": update, **dict(zip(NAMES, means, strict=True))}
