"""The one place where a `ModelConfig`, a model in names and numbers, becomes a model."""

from vma.addressing import Addressing
from vma.config import ModelConfig
from vma.generative_model import GenerativeModel
from vma.likelihoods import Likelihood, build_likelihood
from vma.memory import LearnedMemory
from vma.model import VMA
from vma.networks import Networks, build_networks
from vma.parts import MODELS, SIMILARITIES


def build_model(config: ModelConfig | None = None) -> GenerativeModel:
    """A new model of the configured kind; the default is the paper's for few-shot Omniglot.

    >>> vma.build_model(vma.paper_mlp(model="soft-attention")).image_shape
    (28, 28)
    """
    config = config or ModelConfig()
    return MODELS[config.model](config)


def build_vma(config: ModelConfig | None = None) -> VMA:
    """A new VMA from the parts that `config` names.

    >>> vma.build_vma(vma.paper_mlp(learned_items=16)).prior().perplexity()
    tensor(16., ...)
    """
    return VMA(*parts_of(config or ModelConfig()))


def parts_of(
    config: ModelConfig,
) -> tuple[Networks, Addressing, Likelihood, LearnedMemory | None, ModelConfig]:
    """New parts, as `VMA` takes them."""
    likelihood = build_likelihood(config)
    networks = build_networks(config, likelihood.output)
    key = networks.embedding(config.item_shape)
    query = None if config.tied else networks.embedding(config.image_shape)
    addressing = Addressing(key, query, SIMILARITIES[config.similarity], config.matching, config.prior)
    learned = LearnedMemory(config.learned_items, config.item_shape) if config.learned_items else None
    return networks, addressing, likelihood, learned, config
