"""p(z), p(x|z,m(z)) and q(z|x) with m(z) = Σ_a w_a(z) m_a: memory read by soft attention (Figure 1, left)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from vma.addressing import AddressDistribution
from vma.baselines.latent_model import LatentModel, standard_normal
from vma.baselines.networks import encoder, item_decoder
from vma.config import ModelConfig
from vma.latents import DiagonalGaussian
from vma.likelihoods import build_likelihood
from vma.memory import LearnedMemory, Memory, choose_memory
from vma.networks.convolutional import HEAD_SCALE
from vma.networks.mlp import perceptron
from vma.parts import SIMILARITIES


@dataclass(frozen=True)
class KeysAndValues:
    """What attention needs of M, computed once per memory.

    Attributes:
        keys: k_a, in the matching space.
        values: What is averaged: the items themselves, or each item's half of every decoder layer.
        mask: True where an item may be read; None where all may.
    """

    keys: Float[Tensor, "memory matching"]
    values: tuple[Tensor, ...]
    mask: Bool[Tensor, "_"] | None


class SoftAttention(LatentModel[KeysAndValues]):
    """w(z) = softmax_a S(m_a, e(z)), and a decoder that is given the weighted sum of what it reads from M.

    Keys are h(m_a), as in VMA; the query e(z) depends on z alone, since the weights are part of p(x|M).

    `config.reads` says what is averaged. `features`: the decoder's features of each item at every scale, computed
    once per memory. `pixels`: the raw items, whose average the decoder then reads as one image. Both are the same
    if the decoder's features are linear in m, as in the `mlp` family, or if one item has all the weight.
    `tied` and `prior` have no effect here.

    >>> model = vma.build_model(vma.ModelConfig(model="soft-attention", maps=8))
    >>> memory = vma.Memory.of(torch.zeros(5, 26, 26))
    >>> isinstance(model, vma.baselines.SoftAttention), model.bound(torch.zeros(2, 26, 26), memory).shape
    (True, torch.Size([2]))
    """

    def __init__(self, config: ModelConfig | None = None) -> None:
        super().__init__(config := config or ModelConfig())
        self.encoder = encoder(config, config.image_shape, 2 * config.latent, HEAD_SCALE)
        self.key = encoder(config, config.item_shape, config.matching)
        self.query = perceptron((config.latent, config.hidden[0], config.matching))
        self.similarity = SIMILARITIES[config.similarity]
        self.likelihood = build_likelihood(config)
        self.decoder = item_decoder(config, self.likelihood.output)
        learned = config.learned_items
        self.learned_memory = LearnedMemory(learned, config.item_shape) if learned else None

    def memory(self, memory: Memory | None = None) -> Memory:
        """The memory to use: the given one, checked, or the model's own learned one."""
        return choose_memory(memory, self.learned_memory, self.config.item_shape, next(self.parameters()))

    def condition(self, memory: Memory | None = None) -> KeysAndValues:
        """k_a and the values to be averaged, for all of M."""
        memory = self.memory(memory)
        keys = self.similarity.keys(self.key(memory.items))
        features = self.config.reads == "features"
        values = self.decoder.item_halves(memory.items) if features else (memory.items,)
        return KeysAndValues(keys, values, memory.mask)

    def weights(self, z: Float[Tensor, "*batch latent"], condition: KeysAndValues) -> AddressDistribution:
        """w_a(z) ∝ exp S(m_a, e(z))."""
        scores = self.similarity.scores(condition.keys, self.query(z))
        return AddressDistribution.of_scores(scores, condition.mask)

    def attention(
        self, z: Float[Tensor, "*batch latent"], memory: Memory | None = None
    ) -> AddressDistribution:
        """w(z) over the addresses of `memory`, to be looked at."""
        return self.weights(z.to(next(self.parameters())), self.condition(memory))

    def prior(self, condition: KeysAndValues | None = None) -> DiagonalGaussian:
        """p(z) = N(0, I)."""
        return standard_normal(next(self.parameters()), self.config.latent)

    def posterior(
        self, x: Float[Tensor, "batch *image"], condition: KeysAndValues | None = None
    ) -> DiagonalGaussian:
        """q(z|x)."""
        return DiagonalGaussian.of_statistics(self.encoder(x))

    def decode(
        self, z: Float[Tensor, "batch samples latent"], condition: KeysAndValues
    ) -> Float[Tensor, "batch samples outputs height width"]:
        """The likelihood's features for p(x|z,m(z)), where m(z) is the average of the values."""
        flat = z.flatten(0, 1)
        weights = self.weights(flat, condition).log_probs.exp()
        read = tuple(torch.tensordot(weights, value, dims=1) for value in condition.values)
        item = read if self.config.reads == "features" else self.decoder.item_halves(read[0])
        return self.decoder.decode(flat, item).unflatten(0, z.shape[:2])
