"""p(x|m,z), by name: what a decoder ends in, and how images are scored and drawn."""

from vma.config import ModelConfig
from vma.likelihoods.bernoulli import Bernoulli
from vma.likelihoods.categorical import Categorical
from vma.likelihoods.likelihood import Drawing, Likelihood, join
from vma.likelihoods.reading_order import ReadingOrder

__all__ = ["Bernoulli", "Categorical", "Drawing", "Likelihood", "ReadingOrder", "build_likelihood", "join"]


def build_likelihood(config: ModelConfig) -> Likelihood:
    """The configured likelihood."""
    match config.likelihood:
        case "reading-order":
            return ReadingOrder(config.context_maps, config.neighbourhood, config.ink)
        case "categorical":
            return Categorical(config.levels, config.channels, config.ink)
    return Bernoulli(config.ink)
