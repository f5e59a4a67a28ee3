"""The parts of a model by name: what a `ModelConfig` may say, and where each is made.

A package of your own adds a part by a call, such as `SIMILARITIES.register("euclidean", Euclidean())`, or by an
entry point of the registry's group (docs/extending.md).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vma.registry import Registry

if TYPE_CHECKING:
    from vma.estimators import Estimator
    from vma.index import Index, Place
    from vma.similarity import Similarity

SIMILARITIES: "Registry[Similarity]" = Registry(
    "similarity",
    "vma.similarities",
    {
        "normalized-key": "vma.similarity:NORMALIZED_KEY",
        "inner-product": "vma.similarity:INNER_PRODUCT",
        "cosine": "vma.similarity:COSINE",
    },
)
ESTIMATORS: "Registry[Estimator]" = Registry(
    "estimator",
    "vma.estimators",
    {
        "vimco": "vma.estimators.vimco:VIMCO",
        "vimco-geometric": "vma.estimators.vimco:VIMCO_GEOMETRIC",
        "exact": "vma.estimators.exact:EXACT",
        "rws": "vma.estimators.rws:RWS",
        "reinforce": "vma.estimators.reinforce:REINFORCE",
        "nvil": "vma.estimators.reinforce:NVIL",
        "gumbel": "vma.estimators.gumbel:GUMBEL",
        "without-replacement": "vma.estimators.without_replacement:WITHOUT_REPLACEMENT",
    },
)
# config -> Likelihood
LIKELIHOODS: Registry[Callable[[Any], Any]] = Registry(
    "likelihood",
    "vma.likelihoods",
    {
        "bernoulli": "vma.likelihoods.bernoulli:from_config",
        "reading-order": "vma.likelihoods.reading_order:from_config",
        "categorical": "vma.likelihoods.categorical:from_config",
    },
)
# (config, output) -> Networks
FAMILIES: Registry[Callable[[Any, Any], Any]] = Registry(
    "network family",
    "vma.networks",
    {
        "convolutional": "vma.networks.convolutional:ConvolutionalNetworks",
        "mlp": "vma.networks.mlp:MLPNetworks",
    },
)
# config -> GenerativeModel
MODELS: Registry[Callable[[Any], Any]] = Registry(
    "model",
    "vma.models",
    {
        "vma": "vma.build:build_vma",
        "vae": "vma.baselines.vae:VAE",
        "soft-attention": "vma.baselines.soft_attention:SoftAttention",
        "gmn": "vma.baselines.gmn:GenerativeMatchingNetwork",
    },
)
# Place -> Index
INDEXES: "Registry[Callable[[Place], Index]]" = Registry(
    "index",
    "vma.indexes",
    {
        "exact": "vma.index.exact:ExactIndex",
        "faiss": "vma.index.embedded:FaissIndex",
        "milvus": "vma.index.milvus:MilvusIndex",
    },
)
