"""p(x|m,z), by name: what a decoder ends in, and how images are scored and drawn."""

from vma.config import ModelConfig
from vma.likelihoods.bernoulli import Bernoulli
from vma.likelihoods.likelihood import Drawing, Likelihood
from vma.likelihoods.reading_order import ReadingOrder

__all__ = ["Bernoulli", "Drawing", "Likelihood", "ReadingOrder", "build_likelihood"]


def build_likelihood(config: ModelConfig) -> Likelihood:
    """The configured likelihood."""
    match config.likelihood:
        case "reading-order":
            return ReadingOrder(config.context_maps, config.neighbourhood, config.ink)
    return Bernoulli(config.ink)
