"""p(x) = ∫ N(z; 0, I) p(x|z) dz: a variational autoencoder, the model without memory."""

from jaxtyping import Float
from torch import Tensor

from vma.baselines.latent_model import LatentModel, standard_normal
from vma.baselines.networks import decoder, encoder
from vma.config import ModelConfig
from vma.latents import DiagonalGaussian
from vma.likelihoods import build_likelihood
from vma.memory import Memory
from vma.networks.convolutional import HEAD_SCALE


class VAE(LatentModel[None]):
    """p(z) = N(0, I), q(z|x) and p(x|z), with the encoder and decoder of VMA's families without m.

    A memory may be given, as in comparisons on the same episodes, but is ignored.

    >>> model = vma.build_model(vma.ModelConfig(model="vae", maps=8))
    >>> isinstance(model, vma.baselines.VAE), model.bound(torch.zeros(2, 26, 26)).shape
    (True, torch.Size([2]))
    """

    def __init__(self, config: ModelConfig | None = None) -> None:
        super().__init__(config := config or ModelConfig())
        self.encoder = encoder(config, config.image_shape, 2 * config.latent, HEAD_SCALE)
        self.likelihood = build_likelihood(config)
        self.decoder = decoder(config, config.latent, self.likelihood.output)

    def condition(self, memory: Memory | None = None) -> None:
        """Nothing: p(x|M) = p(x)."""

    def prior(self, condition: None = None) -> DiagonalGaussian:
        """p(z) = N(0, I)."""
        return standard_normal(next(self.parameters()), self.config.latent)

    def posterior(self, x: Float[Tensor, "batch *image"], condition: None = None) -> DiagonalGaussian:
        """q(z|x)."""
        return DiagonalGaussian.of_statistics(self.encoder(x))

    def decode(
        self, z: Float[Tensor, "batch samples latent"], condition: None = None
    ) -> Float[Tensor, "batch samples outputs height width"]:
        """The likelihood's features for p(x|z)."""
        return self.decoder(z.flatten(0, 1)).unflatten(0, z.shape[:2])
