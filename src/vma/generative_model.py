"""p(x|M) by its bounds: what `VMA` and the baselines have in common."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from vma.bounds import BoundTerms, multi_sample_bound
from vma.checks import as_targets, check_samples
from vma.config import ModelConfig
from vma.errors import InputError
from vma.estimators import Estimate, Estimator, estimate, find_estimator
from vma.likelihoods import Likelihood
from vma.memory import KeyedMemory, Memory, PrecedingImages
from vma.proposals import SearchedMemory
from vma.warps import Look

AnyMemory = Memory | KeyedMemory | SearchedMemory | PrecedingImages | None


@dataclass(frozen=True)
class Samples:
    """Draws from p(x|M).

    >>> model = vma.build_vma(vma.paper_mlp())
    >>> drawn = model.sample(vma.Memory.of(torch.zeros(5, 28, 28)), 3)
    >>> drawn.images.shape, drawn.addresses.shape
    (torch.Size([3, 28, 28]), torch.Size([3]))

    Attributes:
        addresses: a of each draw; all 0 for a model without addresses.
        images: x.
        probabilities: The probability of ink at every pixel, from which the images were drawn; for grey levels and
            colours, the mean of each pixel.
        shown: What a figure should show of them (see `Drawing`).
    """

    addresses: Int[Tensor, "samples"]
    images: Float[Tensor, "samples *image"]
    probabilities: Float[Tensor, "samples *image"]
    shown: Float[Tensor, "samples *image"]


class GenerativeModel(nn.Module, ABC):
    """p(x|M) by its bounds: what `VMA` and the baselines have in common.

    A model defines the terms of its bound (`terms`) and decodes draws from its priors (`decoded_draws`); bound,
    gradient and samples follow from these and are written here once.

    >>> vae = vma.build_model(vma.paper_mlp(model="vae"))
    >>> vae.bound(torch.zeros(2, 28, 28), samples=10).shape, vae.has_addresses
    (torch.Size([2]), False)
    """

    likelihood: Likelihood
    latent: int
    image_shape: tuple[int, ...]
    has_addresses = False

    def __init__(self, config: ModelConfig | None = None) -> None:
        super().__init__()
        self.config_or_none = config

    @property
    def config(self) -> ModelConfig:
        """The configuration that the model was built from."""
        if self.config_or_none is None:
            raise InputError(
                "This model was put together from parts and has no configuration: to save it, register its parts "
                "and build it from a ModelConfig that names them (docs/extending.md)."
            )
        return self.config_or_none

    @abstractmethod
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
        """The terms of the bound at `samples` reads per target.

        Args:
            x: Targets [B, height, width] in [0, 1].
            memory: M; leave it out for a learned memory, and for a model without one.
            samples: K. With `sampling="all"`, the number of z for each address.
            sampling: How addresses are read, by a name of `vma.reads.SAMPLINGS`; `independent` for a model
                without addresses.
            hold_q_z: Hold the parameters of q(z|m,x) fixed in log q(z|m,x), as `dreg` needs.
            chunk: Rows that a network processes at a time, for a large K; 0 for all at once.
            seen: In training, how q(a|x) sees an image; p(a) and everything else see it unchanged.
            blind: In training with `reading-order`, the share of targets whose pixels do not see those before them.
            generator: Source of randomness.
        """

    @abstractmethod
    def decoded_draws(
        self, memory: AnyMemory, samples: int, addresses: Any, generator: torch.Generator | None
    ) -> tuple[Int[Tensor, "samples"], Float[Tensor, "samples outputs height width"]]:
        """a ~ p(a), or the given `addresses`, and z ~ p(z|m_a); returns a and the decoder's output of m_a and z."""

    def targets(self, x: Any) -> Float[Tensor, "batch *image"]:
        """Targets x, checked and converted to the type of the weights."""
        images = as_targets(x, self.image_shape, next(self.parameters()))
        self.likelihood.check("targets", images)
        return images

    def forward(
        self,
        x: Any,
        memory: AnyMemory = None,
        samples: int = 4,
        *,
        estimator: str | Estimator = "vimco",
        latent_gradient: str = "pathwise",
        seen: Look | None = None,
        blind: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Estimate:
        """Bound and surrogate loss of one update: `model(x, memory).loss.backward()`.

        Args:
            x: Targets.
            memory: M; leave it out for a learned memory.
            samples: K.
            estimator: One of `vma.ESTIMATORS`, or an `Estimator` of your own. A model without addresses has no
                score: there each estimator is the plain gradient of its objective.
            latent_gradient: `pathwise` or `dreg`.
            seen: How q(a|x) sees an image, such as `vma.warps.look` returns.
            blind: Share of the targets whose pixels do not see those before them (`reading-order`).
            generator: Source of randomness.
        """
        chosen = find_estimator(estimator)
        sampling = chosen.sampling if self.has_addresses else "independent"
        if self.has_addresses:
            check_samples(samples, chosen.least_samples, f"The estimator {chosen.name!r}")
        terms = self.terms(
            x,
            memory,
            1 if sampling == "all" else samples,
            sampling=sampling,
            hold_q_z=latent_gradient == "dreg",
            seen=seen,
            blind=blind,
            generator=generator,
        )
        return estimate(terms, chosen, latent_gradient)

    @torch.no_grad()
    def bound(
        self,
        x: Any,
        memory: AnyMemory = None,
        samples: int = 4,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "batch"]:
        """L = log 1/K Σ_k w_k (eq. 7) for each target, with K = `samples`."""
        return multi_sample_bound(self.terms(x, memory, samples, generator=generator))

    @torch.no_grad()
    def sample(
        self,
        memory: AnyMemory = None,
        samples: int = 16,
        *,
        addresses: Any = None,
        generator: torch.Generator | None = None,
    ) -> Samples:
        """a ~ p(a), z ~ p(z|m_a), x ~ p(x|m_a,z); with `addresses`, one sample from each of them."""
        if addresses is None:
            check_samples(samples, 1, "Sampling")
        a, maps = self.decoded_draws(memory, samples, addresses, generator)
        uniforms = maps.new_empty((len(maps), *self.image_shape)).uniform_(generator=generator)
        drawn = self.likelihood.draw(maps, uniforms)
        return Samples(a, drawn.images, drawn.means, drawn.shown)
