"""p(x|m,z), by name: how a decoder ends, and how images are scored and drawn."""

from vma.config import ModelConfig
from vma.likelihoods.bernoulli import Bernoulli
from vma.likelihoods.categorical import Categorical
from vma.likelihoods.likelihood import Drawing, Likelihood, blind_targets, join
from vma.likelihoods.reading_order import ReadingOrder
from vma.parts import LIKELIHOODS

__all__ = [
    "Bernoulli",
    "Categorical",
    "Drawing",
    "Likelihood",
    "ReadingOrder",
    "blind_targets",
    "build_likelihood",
    "join",
]


def build_likelihood(config: ModelConfig) -> Likelihood:
    """The configured likelihood.

    >>> vma.likelihoods.build_likelihood(vma.ModelConfig(likelihood="reading-order"))
    ReadingOrder(...)
    """
    return LIKELIHOODS[config.likelihood](config)
