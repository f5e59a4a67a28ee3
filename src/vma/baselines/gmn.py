"""p(x|X) = ∫ p(z|X) p(x|z,X) dz, X a set: a generative matching network (Bartunov and Vetrov, 2016)."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from vma.baselines import published
from vma.baselines.latent_model import LatentModel, without_score
from vma.baselines.matching import Controller, Entries, query_network
from vma.baselines.networks import decoder, features
from vma.bounds import BoundTerms, multi_sample_bound
from vma.checks import as_tensor, check_samples
from vma.config import ModelConfig
from vma.errors import InputError
from vma.estimators import Estimate, estimate
from vma.latents import DiagonalGaussian
from vma.likelihoods import build_likelihood
from vma.memory import Memory, choose_memory
from vma.model import blind_targets
from vma.networks.mlp import HEAD_SCALE, perceptron
from vma.similarity import similarity

HOPS = 4  # passes over the set


@dataclass(frozen=True)
class ConditioningSets:
    """Sets X with the same number of targets each, as the two controllers see them.

    Attributes:
        prior: What the prior's controller can match.
        shared: What the controller of recognition and likelihood can match.
        targets: ψ(x) of the targets, where it is known already.
    """

    prior: Entries
    shared: Entries
    targets: Float[Tensor, "batch features"] | None = None

    @property
    def sets(self) -> int:
        """Number of sets; the targets of a set follow each other."""
        return len(self.prior.prototypes)


class GenerativeMatchingNetwork(LatentModel[ConditioningSets]):
    """p(z|X), q(z|x,X) and p(x|z,X), each by matching a query with X: nothing, ψ(x), and z.

    As in the original, ψ is one network for the items and for x as a query; recognition and likelihood share
    a controller, the prior has its own, and both have a pseudo-input: X may be empty, and a `memory` left out
    is. In place of its residual networks are the layers of the configured family; with `style="published"`, those
    of its public code (`vma.baselines.published`). |h| is the first of `hidden`.

    Args:
        config: The model; `tied` and `prior` say nothing here.
        hops: Passes over the set in recognition and likelihood; by default 4, and 1 if `published`.
        prior_hops: Passes over the set in the prior.
    """

    def __init__(
        self, config: ModelConfig | None = None, hops: int | None = None, prior_hops: int = 1
    ) -> None:
        super().__init__()
        self.config = config = config or ModelConfig()
        as_published = config.style == "published"
        hops = (1 if as_published else HOPS) if hops is None else hops
        check_gmn(config, hops, prior_hops)
        state, latent, matching = config.hidden[0], config.latent, config.matching
        self.features, size = (published.features(), published.FEATURES) if as_published else features(config)
        kind, query = similarity(config.similarity), published.Query if as_published else query_network
        self.prior_controller = Controller(size, state, matching, kind, prior_hops, as_published)
        self.shared_controller = Controller(size, state, matching, kind, hops, as_published)
        self.prior_query = query(0, state, matching)
        self.recognition_query = query(size, state, matching)
        self.likelihood_query = query(latent, state, matching)
        read = size + state
        if as_published:
            self.prior_head = published.prior_head(state, latent)
            self.recognition_head = published.recognition_head(state, latent)
        else:
            self.prior_head = perceptron((read, state, 2 * latent), HEAD_SCALE)
            self.recognition_head = perceptron((size + read, state, 2 * latent), HEAD_SCALE)
        self.likelihood = build_likelihood(config)
        build = published.decoder if as_published else decoder
        self.decoder = build(config, latent + read, self.likelihood.output)

    def condition(self, memory: Memory | None = None) -> ConditioningSets:
        """One set for all targets: ψ and g of each item of `memory`, once."""
        pseudo = self.shared_controller.pseudo_input
        if memory is None:
            nothing = torch.zeros((1, 0), dtype=torch.bool, device=pseudo.device)
            return self.sets(pseudo.new_zeros(1, 0, len(pseudo)), nothing)
        memory = choose_memory(memory, None, self.config.item_shape, pseudo)
        return self.sets(self.features(memory.items).unsqueeze(0), memory.in_use().unsqueeze(0))

    def sets(
        self,
        items: Float[Tensor, "sets items features"],
        mask: Bool[Tensor, "#targets items"],
        targets: Float[Tensor, "batch features"] | None = None,
    ) -> ConditioningSets:
        """Sets of `items`, given by their ψ, of which each target may look at those of its `mask`."""
        controllers = (self.prior_controller, self.shared_controller)
        prior, shared = (controller.entries(items, mask) for controller in controllers)
        return ConditioningSets(prior, shared, targets)

    def prior(self, condition: ConditioningSets) -> DiagonalGaussian:
        """p(z|X): there is no query but the controller's state."""
        rows = len(condition.prior.mask)
        nothing = condition.prior.prototypes.new_zeros(condition.sets, rows, 1, 0)
        read = self.prior_controller(condition.prior, self.prior_query, nothing)
        return DiagonalGaussian.of_statistics(self.prior_head(read.flatten(0, 2)))

    def posterior(self, x: Float[Tensor, "batch *image"], condition: ConditioningSets) -> DiagonalGaussian:
        """q(z|x,X): the query is ψ(x)."""
        psi = self.features(x) if condition.targets is None else condition.targets
        query = psi.unflatten(0, (condition.sets, -1)).unsqueeze(2)
        read = self.shared_controller(condition.shared, self.recognition_query, query)
        return DiagonalGaussian.of_statistics(self.recognition_head(torch.cat((psi, read.flatten(0, 2)), -1)))

    def decode(
        self, z: Float[Tensor, "batch samples latent"], condition: ConditioningSets
    ) -> Float[Tensor, "batch samples outputs height width"]:
        """What the likelihood needs for p(x|z,X): the query is z."""
        query = z.unflatten(0, (condition.sets, -1))
        read = self.shared_controller(condition.shared, self.likelihood_query, query)
        maps = self.decoder(torch.cat((query, read), -1).flatten(0, 2))
        return maps.unflatten(0, z.shape[:2])

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
        """As of the other models; for sequences x [S, T, height, width], the sum over positions of each."""
        if memory is None and self.are_sequences(x):
            return self.sequence_estimate(
                x, samples,
                estimator=estimator, latent_gradient=latent_gradient, blind=blind,
                generator=generator,
            )  # fmt: skip
        return super().forward(
            x, memory, samples,
            estimator=estimator, latent_gradient=latent_gradient, blind=blind, generator=generator,
        )  # fmt: skip

    def bound(
        self,
        x: Any,
        memory: Memory | None = None,
        samples: int = 4,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "*targets"]:
        """As of the other models; for sequences, of every image given those before it."""
        if memory is None and self.are_sequences(x):
            return self.sequence_bound(x, samples, generator=generator)
        return super().bound(x, memory, samples, generator=generator)

    def are_sequences(self, x: Any) -> bool:
        """Whether x is [S, T, …] with images in place of the dots, instead of images."""
        return as_tensor("targets", x).ndim == 2 + len(self.config.image_shape)

    def sequence_terms(
        self,
        x: Any,
        samples: int = 1,
        *,
        hold_q_z: bool = False,
        blind: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> BoundTerms:
        """The terms of x_t given x_1 … x_{t−1}, for every t of every sequence; ψ once per image.

        Args:
            x: Sequences [S, T, height, width] in [0, 1].
            samples: K.
            hold_q_z: Hold q(z|x,X) fixed in log q(z|x,X), as `dreg` asks.
            blind: Share of the images whose pixels do not know those before them (`reading-order`).
            generator: Source of randomness.

        Returns:
            Terms of S·T targets, those of a sequence together and in order.
        """
        check_samples(samples, 1, "A bound")
        sequences = as_sequences(x)
        images, time = self.targets(sequences.flatten(0, 1)), sequences.shape[1]
        psi = self.features(images)
        before = torch.ones((time, time), dtype=torch.bool, device=psi.device).tril(-1)
        condition = self.sets(psi.unflatten(0, (-1, time)), before, psi)
        noise = self.noise(len(images), samples, generator)
        hidden = blind_targets(len(images), blind, images.device, generator)
        return self.terms_at(images, condition, noise, hold_q_z=hold_q_z, blind=hidden)

    def sequence_estimate(
        self,
        x: Any,
        samples: int = 1,
        *,
        estimator: str = "vimco",
        latent_gradient: str = "pathwise",
        blind: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Estimate:
        """Σ_t L(x_t | x_1 … x_{t−1}), averaged over sequences: what the original is trained with, at K = 1."""
        name, dreg = without_score(estimator), latent_gradient == "dreg"
        terms = self.sequence_terms(x, samples, hold_q_z=dreg, blind=blind, generator=generator)
        of_images = estimate(terms, name, latent_gradient)
        return Estimate(of_images.bound, as_sequences(x).shape[1] * of_images.surrogate, terms)

    @torch.no_grad()
    def sequence_bound(
        self, x: Any, samples: int = 1, *, generator: torch.Generator | None = None
    ) -> Float[Tensor, "sequences time"]:
        """log 1/K Σ_k w_k of x_t given x_1 … x_{t−1}, for every t of every sequence."""
        terms = self.sequence_terms(x, samples, generator=generator)
        return multi_sample_bound(terms).unflatten(0, as_sequences(x).shape[:2])


def as_sequences(x: Any) -> Tensor:
    """`x` as a tensor of sequences of images; values are checked with the targets."""
    sequences = as_tensor("sequences", x)
    if sequences.ndim not in (4, 5) or 0 in sequences.shape:
        raise InputError(
            f"sequences must have the shape [number, time, height, width], not {list(sequences.shape)}."
        )
    return sequences


def check_gmn(config: ModelConfig, hops: int, prior_hops: int) -> None:
    """Refuse what a generative matching network cannot be."""
    if config.learned_items:
        raise InputError(
            "A generative matching network conditions on images, not on a learned memory: use learned_items=0."
        )
    if min(hops, prior_hops) < 1:
        raise InputError(f"hops and prior_hops must be at least 1, not {hops} and {prior_hops}.")
