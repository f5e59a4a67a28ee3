"""p(x|m,z) = Π_i Bernoulli(x_i; σ(l_i)): the paper's likelihood, independent pixels of black and white."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import softplus

from vma.config import ModelConfig
from vma.latents import full_precision
from vma.likelihoods.likelihood import Drawing, Features, Images, Likelihood
from vma.networks.features import Output, log_odds


class Bernoulli(Likelihood):
    """The decoder ends in one map, the log-odds of ink.

    >>> vma.likelihoods.Bernoulli(ink=0.5).output
    Output(maps=1, bias=(0.0,))

    Args:
        ink: Expected share of ink, to which the log-odds are set at the start.
    """

    def __init__(self, ink: float) -> None:
        super().__init__()
        self.output = Output(1, (log_odds(ink),))

    def check(self, name: str, images: Images) -> None:
        """Accept all images: grey levels in [0, 1] count as shares of ink."""

    def targets(
        self, x: Float[Tensor, "batch height width"], blind: Bool[Tensor, "batch"] | None = None
    ) -> tuple[Tensor, ...]:
        """x itself."""
        return (x,)

    def log_prob(
        self, targets: tuple[Tensor, ...], rows: Int[Tensor, "reads"], features: Features
    ) -> Float[Tensor, "reads"]:
        """Σ_i x_i l_i − log(1 + exp l_i)."""
        return bernoulli_log_prob(targets[0].index_select(0, rows), features.squeeze(1))

    def draw(
        self,
        features: Features,
        uniforms: Float[Tensor, "reads height width"],
        temperature: float = 1.0,
    ) -> Drawing:
        """x_i = [u_i < σ(l_i)]."""
        means = features.squeeze(1).sigmoid()
        return Drawing((uniforms < means).to(means), means, means)


def bernoulli_log_prob(
    x: Float[Tensor, "reads height width"], logits: Float[Tensor, "reads height width"]
) -> Float[Tensor, "reads"]:
    """Σ_i x_i l_i − log(1 + exp l_i), for logits l."""
    flat = full_precision(logits).flatten(1)
    with torch.autocast(flat.device.type, enabled=False):
        agreement = torch.bmm(flat.unsqueeze(1), x.flatten(1).unsqueeze(2)).flatten()
    return agreement - softplus(flat).sum(-1)


def from_config(config: ModelConfig) -> Bernoulli:
    """The likelihood that a configuration describes."""
    return Bernoulli(config.ink)
