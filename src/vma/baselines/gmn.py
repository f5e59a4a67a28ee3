"""p(x|X) = ∫ p(z|X) p(x|z,X) dz, X a set: a generative matching network (Bartunov and Vetrov, 2016)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from vma.baselines import published
from vma.baselines.latent_model import LatentModel, raw_memory
from vma.baselines.matching import Controller, Entries, query_network
from vma.baselines.networks import decoder, features
from vma.config import ModelConfig
from vma.errors import InputError
from vma.generative_model import AnyMemory
from vma.latents import DiagonalGaussian
from vma.likelihoods import build_likelihood
from vma.memory import Memory, PrecedingImages, choose_memory
from vma.networks.mlp import HEAD_SCALE, perceptron
from vma.parts import SIMILARITIES

HOPS = 4  # passes over the set


@dataclass(frozen=True)
class ConditioningSets:
    """Sets X, each with the same number of targets, as the two controllers see them.

    Attributes:
        prior: What the prior's controller can match.
        shared: What the controller of recognition and likelihood can match.
        targets: ψ(x) of the targets, if it is known already.
    """

    prior: Entries
    shared: Entries
    targets: Float[Tensor, "batch features"] | None = None

    @property
    def sets(self) -> int:
        """Number of sets; the targets of one set stand next to each other."""
        return len(self.prior.prototypes)


class GenerativeMatchingNetwork(LatentModel[ConditioningSets]):
    """p(z|X), q(z|x,X) and p(x|z,X), each by matching a query with X: nothing, ψ(x), and z.

    As in the original, ψ is one network both for items and for x as a query; recognition and likelihood share a
    controller, and the prior has its own. Each controller has a pseudo-input, so that X may be empty: leave
    `memory` out. The layers of the configured family replace the original's residual networks, except with
    `style="published"`, which has those of its public code (`vma.baselines.published`). |h| is `hidden[0]`.

    >>> model = vma.build_model(vma.ModelConfig(model="gmn", maps=8))
    >>> memory = vma.Memory.of(torch.zeros(5, 26, 26))
    >>> isinstance(model, vma.baselines.GenerativeMatchingNetwork), len(model.bound(torch.zeros(2, 26, 26), memory))
    (True, 2)

    Args:
        config: The model; `tied` and `prior` have no effect here.
        hops: Passes over the set in recognition and likelihood; by default 4, and 1 if `published`.
        prior_hops: Passes over the set in the prior.
    """

    def __init__(
        self, config: ModelConfig | None = None, hops: int | None = None, prior_hops: int = 1
    ) -> None:
        super().__init__(config := config or ModelConfig())
        as_published = config.style == "published"
        hops = (1 if as_published else HOPS) if hops is None else hops
        check_gmn(config, hops, prior_hops)
        state, latent, matching = config.hidden[0], config.latent, config.matching
        self.features, size = (published.features(), published.FEATURES) if as_published else features(config)
        kind, query = SIMILARITIES[config.similarity], published.Query if as_published else query_network
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
        """One set for all targets: ψ and g of each item of `memory`, computed once."""
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
        """Sets of `items`, given as ψ; each target may look at the items in its `mask`."""
        controllers = (self.prior_controller, self.shared_controller)
        prior, shared = (controller.entries(items, mask) for controller in controllers)
        return ConditioningSets(prior, shared, targets)

    def prior(self, condition: ConditioningSets) -> DiagonalGaussian:
        """p(z|X): the only query is the controller's state."""
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
        """The likelihood's features for p(x|z,X), where the query is z."""
        query = z.unflatten(0, (condition.sets, -1))
        read = self.shared_controller(condition.shared, self.likelihood_query, query)
        maps = self.decoder(torch.cat((query, read), -1).flatten(0, 2))
        return maps.unflatten(0, z.shape[:2])

    def condition_of(self, x: Float[Tensor, "batch *image"], memory: AnyMemory) -> ConditioningSets:
        """One set for all targets; for sequences, the images before each target, with ψ computed once per image."""
        if not isinstance(memory, PrecedingImages):
            return self.condition(raw_memory(memory))
        if len(x) % memory.length:
            raise InputError(
                f"{len(x)} targets are not sequences of {memory.length} images: give all images of every sequence."
            )
        psi = self.features(x)
        before = torch.ones((memory.length, memory.length), dtype=torch.bool, device=psi.device).tril(-1)
        return self.sets(psi.unflatten(0, (-1, memory.length)), before, psi)


def check_gmn(config: ModelConfig, hops: int, prior_hops: int) -> None:
    """Refuse configurations that are impossible for a generative matching network."""
    if config.learned_items:
        raise InputError(
            "A generative matching network conditions on images, not on a learned memory: use learned_items=0."
        )
    if min(hops, prior_hops) < 1:
        raise InputError(f"hops and prior_hops must be at least 1, not {hops} and {prior_hops}.")
