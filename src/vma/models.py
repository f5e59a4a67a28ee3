"""Every model by name, behind one interface: `forward`, `terms`, `bound` and `sample`."""

from typing import Any

from vma.baselines import VAE, GenerativeMatchingNetwork, SoftAttention
from vma.baselines.latent_model import LatentModel
from vma.config import ModelConfig
from vma.model import VMA

GenerativeModel = VMA | LatentModel[Any]


def build_model(config: ModelConfig) -> GenerativeModel:
    """A new model of the configured kind."""
    match config.model:
        case "vae":
            return VAE(config)
        case "soft-attention":
            return SoftAttention(config)
        case "gmn":
            return GenerativeMatchingNetwork(config)
    return VMA(config)
