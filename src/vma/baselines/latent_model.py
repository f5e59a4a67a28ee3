"""p(x|M) = ∫ p(z|M) p(x|z,M) dz: what the baselines share, namely a latent z and no address."""

import math
from abc import abstractmethod
from typing import Any, Generic, TypeVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vma.bounds import BoundTerms
from vma.checks import check_samples
from vma.chunks import in_chunks
from vma.config import ModelConfig
from vma.errors import InputError
from vma.generative_model import AnyMemory, GenerativeModel
from vma.latents import DiagonalGaussian
from vma.likelihoods import blind_targets
from vma.memory import KeyedMemory, Memory, PrecedingImages
from vma.proposals import SearchedMemory
from vma.warps import Look

Condition = TypeVar("Condition")


class LatentModel(GenerativeModel, Generic[Condition]):
    """p(z|M), q(z|x,M) and p(x|z,M), behind the interface of `VMA`.

    A subclass says what it computes once per memory (`condition`) and how the three distributions follow from
    that. With log p(a) = log q(a|x) = 0, the multi-sample bound is that of IWAE, and the ELBO that of a VAE.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.latent, self.image_shape = config.latent, config.image_shape

    @abstractmethod
    def condition(self, memory: Memory | None = None) -> Condition:
        """All that depends on M alone, computed once for all targets and samples."""

    def condition_of(self, x: Float[Tensor, "batch *image"], memory: AnyMemory) -> Condition:
        """The same for targets x, which are also the memory in a model of sequences."""
        return self.condition(raw_memory(memory))

    @abstractmethod
    def prior(self, condition: Condition) -> DiagonalGaussian:
        """p(z|M), with one row for all targets or one for each."""

    @abstractmethod
    def posterior(self, x: Float[Tensor, "batch *image"], condition: Condition) -> DiagonalGaussian:
        """q(z|x,M), with one row for each target."""

    @abstractmethod
    def decode(
        self, z: Float[Tensor, "batch samples latent"], condition: Condition
    ) -> Float[Tensor, "batch samples outputs height width"]:
        """The likelihood's features for p(x|z,M)."""

    def noise(
        self, batch: int, samples: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "batch samples latent"]:
        """ε ~ N(0, I), with the type of the weights."""
        weight = next(self.parameters())
        shape = (batch, samples, self.config.latent)
        return torch.randn(shape, dtype=weight.dtype, device=weight.device, generator=generator)

    def terms(
        self,
        x: Any,
        memory: AnyMemory = None,
        samples: int = 4,
        *,
        sampling: str = "independent",
        hold_q_z: bool = False,
        chunk: int = 0,
        seen: Look | None = None,
        blind: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> BoundTerms:
        """The terms of the bound at `samples` draws from q(z|x,M) per target."""
        check_samples(samples, 1, "A bound")
        if sampling != "independent":
            raise InputError(
                f"This model has no addresses: sampling must be 'independent', not {sampling!r}."
            )
        if seen is not None:
            raise InputError(
                "This model has no addresses, so there is no q(a|x) to see anything: leave it out."
            )
        x = self.targets(x)
        condition = self.condition_of(x, memory)
        noise = self.noise(len(x), samples, generator)
        hidden = blind_targets(len(x), blind, x.device, generator)
        return self.terms_at(x, condition, noise, hold_q_z=hold_q_z, blind=hidden, chunk=chunk)

    def terms_at(
        self,
        x: Float[Tensor, "batch *image"],
        condition: Condition,
        noise: Float[Tensor, "batch samples latent"],
        *,
        hold_q_z: bool = False,
        blind: Bool[Tensor, "batch"] | None = None,
        chunk: int = 0,
    ) -> BoundTerms:
        """The terms at given `noise` of z, without further randomness. The encoder runs once per target."""
        p_z, q_z = (d.map(over_samples) for d in (self.prior(condition), self.posterior(x, condition)))
        z = q_z.sample(noise)
        size, pixels = chunk and max(1, chunk // len(x)), self.likelihood.targets(x, blind)

        def likelihood(part: slice) -> Tensor:
            maps = self.decode(z[:, part], condition)
            rows = torch.arange(len(x), device=x.device).repeat_interleave(maps.shape[1])
            return self.likelihood.log_prob(pixels, rows, maps.flatten(0, 1)).unflatten(0, maps.shape[:2])

        log_p_x = in_chunks(likelihood, z.shape[1], size, dim=1)
        none = torch.zeros_like(log_p_x)
        return BoundTerms(
            log_p_a=none,
            log_q_a=none,
            log_p_z=p_z.log_prob(z),
            log_q_z=(q_z.detach() if hold_q_z else q_z).log_prob(z),
            log_p_x=log_p_x,
            log_mass=torch.full_like(log_p_x, -math.log(noise.shape[1])),
            kl_z=q_z.kl(p_z).expand(log_p_x.shape),
            z=z,
            hold_q_z=hold_q_z,
            has_address=False,
        )

    def decoded_draws(
        self, memory: AnyMemory, samples: int, addresses: Any, generator: torch.Generator | None
    ) -> tuple[Int[Tensor, "samples"], Float[Tensor, "samples outputs height width"]]:
        """z ~ p(z|M) and the decoder's output for it; the addresses are all 0, since there are none."""
        if addresses is not None:
            raise InputError("This model has no addresses to draw from: leave them out.")
        condition = self.condition(raw_memory(memory))
        z = self.prior(condition).map(over_samples).sample(self.noise(1, samples, generator))
        nowhere = torch.zeros(samples, dtype=torch.int64, device=z.device)
        return nowhere, self.decode(z, condition).squeeze(0)


def raw_memory(memory: AnyMemory) -> Memory | None:
    """The items alone, since a model without addresses has no use for keys."""
    if isinstance(memory, PrecedingImages):
        raise InputError("Only a generative matching network conditions on preceding images.")
    if isinstance(memory, SearchedMemory):
        raise InputError("Only a vma model looks things up: give this one a memory that is held whole.")
    return memory.memory if isinstance(memory, KeyedMemory) else memory


def over_samples(rows: Float[Tensor, "#batch latent"]) -> Float[Tensor, "#batch 1 latent"]:
    """One row per target, to be shared by its samples."""
    return rows.unsqueeze(1)


def standard_normal(weight: Tensor, latent: int) -> DiagonalGaussian:
    """N(0, I), in one row for all targets, with the type of `weight`."""
    zeros = weight.new_zeros(1, latent)
    return DiagonalGaussian(zeros, zeros)
