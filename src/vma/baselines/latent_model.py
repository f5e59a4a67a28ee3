"""p(x|M) = ∫ p(z|M) p(x|z,M) dz: what the baselines share, a latent z and no address."""

import math
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from vma.bounds import BoundTerms, multi_sample_bound
from vma.checks import as_targets, check_samples
from vma.chunks import in_chunks
from vma.config import ModelConfig
from vma.errors import InputError
from vma.estimators import Estimate, estimate, find_estimator
from vma.latents import DiagonalGaussian
from vma.likelihoods import Likelihood
from vma.memory import Memory
from vma.model import Samples, blind_targets

# Without an address there is nothing to score: every estimator of an objective has the gradient of the objective
# itself, which is the surrogate of these.
WITHOUT_SCORE = {"multi-sample": "gumbel", "elbo": "exact"}

Condition = TypeVar("Condition")


class LatentModel(nn.Module, ABC, Generic[Condition]):
    """p(z|M), q(z|x,M) and p(x|z,M), behind the interface of `VMA`.

    A final class says what it computes once per memory (`condition`) and how the three distributions follow
    from that. With log p(a) = log q(a|x) = 0 the multi-sample bound is that of IWAE, and the ELBO that of a VAE.
    """

    config: ModelConfig
    likelihood: Likelihood

    @abstractmethod
    def condition(self, memory: Memory | None = None) -> Condition:
        """All that depends on M alone, computed once, whatever the number of targets and samples."""

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
        """What the likelihood needs for p(x|z,M)."""

    def targets(self, x: Any) -> Float[Tensor, "batch *image"]:
        """Targets x, checked, with the type of the weights."""
        images = as_targets(x, self.config.image_shape, next(self.parameters()))
        self.likelihood.check("targets", images)
        return images

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
        memory: Memory | None = None,
        samples: int = 4,
        *,
        sampling: str = "independent",
        hold_q_z: bool = False,
        chunk: int = 0,
        blind: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> BoundTerms:
        """The terms of the bound at `samples` draws from q(z|x,M) per target.

        Args:
            x: Targets [B, height, width] in [0, 1].
            memory: M.
            samples: K.
            sampling: `independent`, for there are no addresses to be drawn in another way.
            hold_q_z: Hold q(z|x,M) fixed in log q(z|x,M), as `dreg` asks.
            chunk: Rows that the decoder sees at a time, for a large K; 0 for all at once.
            blind: Share of the targets whose pixels do not know those before them, in training (`reading-order`).
            generator: Source of randomness.
        """
        check_samples(samples, 1, "A bound")
        if sampling != "independent":
            raise InputError(
                f"This model has no addresses: sampling must be 'independent', not {sampling!r}."
            )
        x, condition = self.targets(x), self.condition(memory)
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
        """The terms at given `noise` of z; no randomness is left. The encoder runs once per target."""
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
        )

    def forward(
        self,
        x: Any,
        memory: Memory | None = None,
        samples: int = 4,
        *,
        estimator: str = "vimco",
        latent_gradient: str = "pathwise",
        blind: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Estimate:
        """Bound and surrogate of one update: `(-model(x, memory).surrogate).backward()`.

        Args:
            x: Targets.
            memory: M.
            samples: K; 1 gives the ELBO.
            estimator: One of `vma.ESTIMATORS`. Without an address it is the gradient of its objective: of the
                multi-sample bound, or of the ELBO, averaged over the samples.
            latent_gradient: `pathwise` or `dreg`.
            blind: Share of the targets whose pixels do not know those before them (`reading-order`).
            generator: Source of randomness.
        """
        name, dreg = without_score(estimator), latent_gradient == "dreg"
        terms = self.terms(x, memory, samples, hold_q_z=dreg, blind=blind, generator=generator)
        return estimate(terms, name, latent_gradient)

    @torch.no_grad()
    def bound(
        self,
        x: Any,
        memory: Memory | None = None,
        samples: int = 4,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "batch"]:
        """L = log 1/K Σ_k p(x,z_k|M) / q(z_k|x,M) for each target, with K = `samples`."""
        return multi_sample_bound(self.terms(x, memory, samples, generator=generator))

    @torch.no_grad()
    def sample(
        self, memory: Memory | None = None, samples: int = 16, *, generator: torch.Generator | None = None
    ) -> Samples:
        """z ~ p(z|M), x ~ p(x|z,M); the addresses are all 0, for there are none."""
        check_samples(samples, 1, "Sampling")
        condition = self.condition(memory)
        z = self.prior(condition).map(over_samples).sample(self.noise(1, samples, generator))
        maps = self.decode(z, condition).squeeze(0)
        uniforms = z.new_empty((samples, *self.config.image_shape)).uniform_(generator=generator)
        nowhere = torch.zeros(samples, dtype=torch.int64, device=z.device)
        return Samples.of(nowhere, self.likelihood.draw(maps, uniforms))


def without_score(name: str) -> str:
    """The estimator whose surrogate is the objective of the one of that `name`, and nothing else."""
    return WITHOUT_SCORE[find_estimator(name).objective]


def over_samples(rows: Float[Tensor, "#batch latent"]) -> Float[Tensor, "#batch 1 latent"]:
    """One row per target, to be shared by its samples."""
    return rows.unsqueeze(1)


def standard_normal(weight: Tensor, latent: int) -> DiagonalGaussian:
    """N(0, I), in one row for all targets, with the type of `weight`."""
    zeros = weight.new_zeros(1, latent)
    return DiagonalGaussian(zeros, zeros)
