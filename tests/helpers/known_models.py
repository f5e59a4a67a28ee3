"""Models whose answers are known: one that knows every class, one that cannot choose; and images to ask about."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vma import VMA, AddressDistribution, BoundTerms, Memory, ModelConfig
from vma.build import parts_of
from vma.data.dataset import Dataset
from vma.evaluation.trained_run import About, DataDescription, ModelDescription, TrainedRun
from vma.reads import Reads
from vma.runs.settings import EpisodeSettings, TrainSettings

COST = 11.0  # −log p(x|m_a) where m_a is of x's class
SIZE = 4
CONFIG = ModelConfig(height=SIZE, width=SIZE, family="mlp", hidden=(5,), latent=2, matching=3)


def coded(classes: int, each: int) -> Dataset:
    """Images that say in binary which class they are of (upper half) and which image (lower half)."""
    images = np.zeros((classes * each, SIZE, SIZE), dtype=np.uint8)
    labels = np.repeat(np.arange(classes), each)
    half = SIZE * SIZE // 2
    for i, label in enumerate(labels):
        bits = [int(label) >> b & 1 for b in range(half)] + [i % each >> b & 1 for b in range(half)]
        images[i] = 255 * np.array(bits, dtype=np.uint8).reshape(SIZE, SIZE)
    return Dataset("coded", "all", images, labels, tuple(f"c{c}" for c in range(classes)), "built")


def code(images: Tensor) -> Tensor:
    """The class that an image says it is of."""
    half = images.flatten(1)[:, : SIZE * SIZE // 2].round().long()
    return (half << torch.arange(half.shape[1])).sum(1)


class Perfect(VMA):
    """p(a) = 1/|M|, q(a|x) flat over the items of x's class, p(x|m_a) = exp(−COST) there: NLL = COST + log C."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(*parts_of(config))

    def posterior(self, x: Any, memory: Memory | None = None) -> AddressDistribution:
        assert memory is not None
        own = code(x).unsqueeze(1) == code(memory.items)
        own = own | ~own.any(1, keepdim=True)
        return AddressDistribution(own.double().log().log_softmax(-1))

    def prior(self, memory: Memory | None = None) -> AddressDistribution:
        assert memory is not None
        return AddressDistribution(torch.zeros(len(memory)).log_softmax(-1))

    def terms(self, x: Any, memory: Memory | None = None, samples: int = 4, **options: Any) -> BoundTerms:
        assert memory is not None
        q_a, p_a = self.posterior(x, memory), self.prior(memory)
        everything = options.get("sampling") == "all"
        a = (
            torch.arange(len(memory)).repeat_interleave(samples).expand(len(x), -1)
            if everything
            else q_a.sample(samples)
        )
        count = samples if everything else a.shape[1]
        log_q = q_a.log_prob(a)
        mass = (log_q if everything else torch.zeros(a.shape)) - math.log(count)
        right = code(x).unsqueeze(1) == code(memory.items)[a]
        log_p_x = torch.where(right, -COST, -100.0)
        zero = torch.zeros(a.shape)
        finite = torch.where(torch.isinf(log_q), zero, log_q)
        mass = torch.where(torch.isinf(mass), zero - math.log(count), mass)
        return BoundTerms(p_a.log_prob(a), finite, zero, zero, log_p_x.double(), mass, zero, p_a, q_a)

    def terms_at(
        self, x: Tensor, memory: Memory, p_a: Any, q_a: Any, reads: Reads, noise: Tensor, **how: Any
    ) -> BoundTerms:
        a = reads.addresses
        zero = torch.zeros(a.shape)
        right = code(x).unsqueeze(1) == code(memory.items)[a]
        log_p_x = torch.where(right, zero - COST, zero - 100.0)
        return BoundTerms(p_a.log_prob(a), q_a.log_prob(a), zero, zero, log_p_x, reads.log_mass)


class Blind(Perfect):
    """q(a|x) flat over all of M: it cannot choose."""

    def posterior(self, x: Any, memory: Memory | None = None) -> AddressDistribution:
        assert memory is not None
        return AddressDistribution(torch.zeros(len(x), len(memory)).log_softmax(-1))


def trained(model: VMA, dataset: Dataset, shots: int = 2) -> TrainedRun:
    settings = TrainSettings(model=CONFIG, episode=EpisodeSettings(classes=2, targets=1, shots=shots))
    return TrainedRun(
        model, dataset, settings, About(ModelDescription(kind="vma"), DataDescription(dataset.name))
    )
