"""Muon: orthogonalised momentum (Jordan et al., 2024), for kernels and fully-connected weights.

torch.optim.Muon takes only two-dimensional parameters and works in bfloat16, which is slow on most CPUs. Here
kernels are flattened, matrices of equal shape are orthogonalised together, and the type is kept.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEPS = 5


def orthogonalise(matrices: Float[Tensor, "count rows columns"]) -> Float[Tensor, "count rows columns"]:
    """U Vᵀ of G = U S Vᵀ, roughly: X ← aX + (bA + cA²)X with A = XXᵀ, five times, from G / ‖G‖."""
    a, b, c = COEFFICIENTS
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / x.flatten(1).norm(dim=1).clamp(min=1e-7).view(-1, 1, 1)
    for _ in range(STEPS):
        gram = torch.bmm(x, x.mT)
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


def as_matrix(tensor: Tensor, transposed: bool) -> Tensor:
    """[out, in · 9]; a transposed convolution's kernel has in and out swapped first."""
    return (tensor.transpose(0, 1) if transposed else tensor).flatten(1)


class Muon(torch.optim.Optimizer):
    """θ ← (1 − rate · decay) θ − rate · √max(1, rows/columns) · orthogonalise(momentum).

    The momentum is Nesterov's, 0.95. As in the authors' version, the decay is separate from the gradient: as a
    part of it, it would almost vanish, because all singular values become 1.
    """

    def __init__(
        self, groups: Iterable[dict[str, Any]], rate: float, weight_decay: float = 0.0, momentum: float = 0.95
    ) -> None:
        super().__init__(groups, {"lr": rate, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update of all parameters that have a gradient."""
        for group in self.param_groups:
            kept = 1 - group["lr"] * group["weight_decay"]
            by_shape: dict[torch.Size, list[tuple[nn.Parameter, Tensor]]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    direction = self.direction(parameter, group)
                    by_shape[direction.shape].append((parameter, direction))
            for shape, pairs in by_shape.items():
                scale = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                moves = orthogonalise(torch.stack([direction for _, direction in pairs]))
                for (parameter, _), move in zip(pairs, moves, strict=True):
                    apply(parameter, kept, move, scale, group["transposed"])

    def direction(self, parameter: nn.Parameter, group: dict[str, Any]) -> Tensor:
        """g + μB with B ← μB + g, as a matrix."""
        gradient = parameter.grad
        assert gradient is not None
        state = self.state[parameter]
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(gradient)
        momentum = state["momentum"].mul_(group["momentum"]).add_(gradient)
        return as_matrix(gradient.add(momentum, alpha=group["momentum"]), group["transposed"])


def apply(parameter: nn.Parameter, kept: float, move: Tensor, scale: float, transposed: bool) -> None:
    """θ ← kept · θ − scale · move, with the move folded back into the parameter's shape."""
    parameter.mul_(kept)
    if transposed:
        shape = (parameter.shape[1], parameter.shape[0], *parameter.shape[2:])
        parameter.sub_(move.reshape(shape).transpose(0, 1), alpha=scale)
    else:
        parameter.sub_(move.reshape(parameter.shape), alpha=scale)
