"""r = Σ_i a_i ψ(x_i), a = softmax_i S(g(x_i), f(query, h)), h ← GRU(r, h): full context matching of a set.

Equation 6 of Bartunov and Vetrov (2016), "Fast adaptation in generative models with Generative Matching
Networks".
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from vma.addressing import AddressDistribution
from vma.baselines.published import Cell, key_network
from vma.networks.features import linear
from vma.networks.mlp import perceptron
from vma.similarity import Similarity

Inputs = Float[Tensor, "sets targets samples inputs"]


@dataclass(frozen=True)
class Entries:
    """What can be matched in each set, beginning with the pseudo-input; computed once per set.

    Attributes:
        keys: g(x_i), in the matching space.
        prototypes: ψ(x_i).
        mask: True where a target may look at an entry; one row for all targets, or one for each.
    """

    keys: Float[Tensor, "sets entries matching"]
    prototypes: Float[Tensor, "sets entries features"]
    mask: Bool[Tensor, "#targets entries"]


class Controller(nn.Module):
    """The network g, the pseudo-input, and the recurrent state that gathers what the set has in common.

    Args:
        features: Size of ψ.
        state: Size of h.
        matching: Size of the matching space.
        similarity: S. With normalised keys and free queries it is a cosine whose temperature f sets.
        hops: Number of passes over the set.
        published: Use the layers of GMN's public code, in which the pseudo-input has a key of its own.
    """

    def __init__(
        self,
        features: int,
        state: int,
        matching: int,
        similarity: Similarity,
        hops: int,
        published: bool = False,
    ) -> None:
        super().__init__()
        self.hops = hops
        self.similarity = similarity
        self.pseudo_input, self.start = small(features, features), small(state, features)
        self.pseudo_key = small(matching, features) if published else None
        self.key = key_network(matching) if published else linear(features, matching)
        self.cell = Cell(features, state) if published else nn.GRUCell(features, state)

    def entries(
        self, features: Float[Tensor, "sets items features"], mask: Bool[Tensor, "#targets items"]
    ) -> Entries:
        """The pseudo-input, which every target may look at, followed by the items."""
        pseudo = self.pseudo_input.expand(len(features), 1, -1)
        prototypes = torch.cat((pseudo, features), 1)
        embedded = self.key(prototypes.flatten(0, 1)).unflatten(0, prototypes.shape[:2])
        if self.pseudo_key is not None:
            embedded = torch.cat((self.pseudo_key.expand(len(features), 1, -1), embedded[:, 1:]), 1)
        keys = self.similarity.keys(embedded.flatten(0, 1)).unflatten(0, prototypes.shape[:2])
        return Entries(keys, prototypes, torch.cat((mask.new_ones(len(mask), 1), mask), 1))

    def weights(
        self, query: Float[Tensor, "sets targets samples matching"], entries: Entries
    ) -> AddressDistribution:
        """a_i ∝ exp S(g(x_i), f), over the entries that a target may look at."""
        scores = self.similarity.queries(query) @ entries.keys.unsqueeze(1).mT
        return AddressDistribution.of_scores(scores, entries.mask.unsqueeze(1))

    def forward(
        self, entries: Entries, f: nn.Module, inputs: Inputs
    ) -> Float[Tensor, "sets targets samples outputs"]:
        """[r, h] after the last hop, for queries that start from `inputs`."""
        shape = inputs.shape[:3]
        state = self.start.expand(*shape, -1)
        for _ in range(self.hops):
            weights = self.weights(f(torch.cat((inputs, state), -1)), entries).log_probs.exp()
            read = weights @ entries.prototypes.unsqueeze(1)
            state = self.cell(read.flatten(0, 2), state.flatten(0, 2)).unflatten(0, shape)
        return torch.cat((read, state), -1)


def small(units: int, features: int) -> nn.Parameter:
    """Numbers between −1/|ψ| and 1/|ψ|."""
    return nn.Parameter(torch.empty(units).uniform_(-1 / features, 1 / features))


def query_network(inputs: int, state: int, matching: int) -> nn.Module:
    """f: [query, h] → |h| → the matching space."""
    return perceptron((inputs + state, state, matching))
