"""Exact answers for models with z and no address."""

from typing import Any

import torch
from torch import Tensor

from tests.helpers.oracles import quadrature
from vma import Memory
from vma.baselines.latent_model import LatentModel


@torch.no_grad()
def exact_log_p_x(
    model: LatentModel[Any], x: Tensor, memory: Memory | None = None, nodes: int = 101
) -> Tensor:
    """log ∫ p(z|M) p(x|z,M) dz by quadrature."""
    points, log_weights = quadrature(nodes, model.config.latent)
    condition = model.condition(memory)
    p_z = model.prior(condition)
    z = (p_z.mean + p_z.log_std.exp() * points)[None]
    pixels = torch.distributions.Bernoulli(logits=model.decode(z, condition)[0, :, 0])
    log_p_x = torch.stack([pixels.log_prob(target).sum((1, 2)) for target in x])
    return torch.logsumexp(log_weights + log_p_x, 1)


def every_image(height: int, width: int) -> Tensor:
    """All 2^(height·width) binary images, in the order of `image_number`."""
    pixels = height * width
    numbers = torch.arange(2**pixels)[:, None] >> torch.arange(pixels)
    return (numbers & 1).double().view(-1, height, width)


def image_number(images: Tensor) -> Tensor:
    """Σ_i x_i 2^i."""
    flat = images.flatten(1)
    return (flat @ 2.0 ** torch.arange(flat.shape[1])).long()


@torch.no_grad()
def make_louder(module: torch.nn.Module, factor: float = 1.6) -> None:
    """Multiply all weights, so that z and M matter more than the noise of a test."""
    for parameter in module.parameters():
        parameter.mul_(factor)
