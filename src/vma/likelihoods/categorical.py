"""p(x|m,z) = Π_i softmax(l_i)[x_i]: independent pixels of a few grey levels, in one channel or in three."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vma.config import ModelConfig
from vma.latents import full_precision
from vma.likelihoods.likelihood import Drawing, Features, Images, Likelihood
from vma.networks.features import Output


class Categorical(Likelihood):
    """The decoder ends in one map for each level of each channel: log-probabilities up to a constant.

    Values of x between two levels count as the nearer one: what is scored is the rounded image.

    >>> likelihood = vma.likelihoods.Categorical(levels=4, channels=3, ink=0.1)
    >>> likelihood.output.maps, likelihood.channels
    (12, 3)

    Args:
        levels: Number of grey levels L: the values 0, 1/(L − 1), … 1.
        channels: 1, or 3 for colour.
        ink: Expected share of pixels that are not empty, to which the probabilities are set at the start.
    """

    def __init__(self, levels: int, channels: int, ink: float) -> None:
        super().__init__()
        self.levels, self.channels = levels, channels
        start = (math.log(1 - ink), *[math.log(ink / (levels - 1))] * (levels - 1))
        self.output = Output(channels * levels, start * channels)

    def check(self, name: str, images: Images) -> None:
        """Accept all images: values between two levels are rounded."""

    def targets(self, x: Images, blind: Bool[Tensor, "batch"] | None = None) -> tuple[Tensor, ...]:
        """The level of every pixel and channel."""
        return ((x * (self.levels - 1)).round().long().flatten(1),)

    def log_prob(
        self, targets: tuple[Tensor, ...], rows: Int[Tensor, "reads"], features: Features
    ) -> Float[Tensor, "reads"]:
        """Σ_i log softmax(l_i)[x_i]."""
        level = targets[0].index_select(0, rows).unsqueeze(-1)
        return self.log_probs(features).flatten(1, -2).gather(-1, level).sum((1, 2))

    def log_probs(self, features: Features) -> Float[Tensor, "reads channels height width levels"]:
        """Log-probabilities of the levels of every pixel and channel."""
        levels = full_precision(features).unflatten(1, (self.channels, self.levels))
        return levels.movedim(2, -1).log_softmax(-1)

    def draw(
        self, features: Features, uniforms: Float[Tensor, "reads *image"], temperature: float = 1.0
    ) -> Drawing:
        """The level at which a pixel's distribution function passes u_i."""
        shape, p = uniforms.shape, self.log_probs(features).exp()
        values = torch.linspace(0, 1, self.levels, dtype=p.dtype, device=p.device)
        passed = p.cumsum(-1)[..., :-1] <= uniforms.view(p.shape[:-1]).unsqueeze(-1)
        means = (p * values).sum(-1).view(shape)
        return Drawing(values[passed.sum(-1)].view(shape), means, means)


def from_config(config: ModelConfig) -> Categorical:
    """The likelihood that a configuration describes."""
    return Categorical(config.levels, config.channels, config.ink)
