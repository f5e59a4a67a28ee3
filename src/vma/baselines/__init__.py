"""The paper's baselines, behind the interface of `VMA` and on the same networks."""

from vma.baselines.gmn import GenerativeMatchingNetwork
from vma.baselines.soft_attention import SoftAttention
from vma.baselines.vae import VAE

__all__ = ["VAE", "GenerativeMatchingNetwork", "SoftAttention"]
