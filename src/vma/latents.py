"""p(z|m) and q(z|m,x): diagonal Gaussians."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

# A smooth bound keeps log σ in (−LIMIT, LIMIT), so that a network that overshoots gives no infinite weight.
LOG_STD_LIMIT = 6.0


@dataclass(frozen=True)
class DiagonalGaussian:
    """N(μ, diag σ²), by its mean and the logarithm of σ."""

    mean: Float[Tensor, "*batch latent"]
    log_std: Float[Tensor, "*batch latent"]

    @staticmethod
    def of_statistics(statistics: Float[Tensor, "*batch twice_latent"]) -> "DiagonalGaussian":
        """The Gaussian whose μ and log σ are the two halves of a network's output."""
        mean, raw = full_precision(statistics).chunk(2, dim=-1)
        return DiagonalGaussian(mean, LOG_STD_LIMIT * torch.tanh(raw / LOG_STD_LIMIT))

    def map(self, function: Callable[[Tensor], Tensor]) -> "DiagonalGaussian":
        """The distribution with `function`, such as a gather, applied to mean and log σ."""
        return DiagonalGaussian(function(self.mean), function(self.log_std))

    def detach(self) -> "DiagonalGaussian":
        """The same distribution with no gradient to its parameters."""
        return DiagonalGaussian(self.mean.detach(), self.log_std.detach())

    def sample(self, noise: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch latent"]:
        """z = μ + σ ε, for standard normal `noise` ε: differentiable in μ and σ."""
        return self.mean + self.log_std.exp() * noise

    def log_prob(self, z: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch"]:
        """log N(z; μ, σ²), summed over the latent axis."""
        scaled = (z - self.mean) * (-self.log_std).exp()
        return -(0.5 * scaled.square() + self.log_std).sum(-1) - 0.5 * z.shape[-1] * math.log(2 * math.pi)

    def kl(self, other: "DiagonalGaussian") -> Float[Tensor, "*batch"]:
        """KL(self ‖ other) = Σ log σ'/σ + (σ² + (μ − μ')²) / 2σ'² − ½, exactly."""
        ratio = (2 * (self.log_std - other.log_std)).exp()
        shift = ((self.mean - other.mean) * (-other.log_std).exp()).square()
        return (other.log_std - self.log_std + 0.5 * (ratio + shift - 1)).sum(-1)


def full_precision(tensor: Tensor) -> Tensor:
    """`tensor` in float32 if it is in half precision: sums over hundreds of pixels need more than 8 bits."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
