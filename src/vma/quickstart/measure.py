"""What a trained model is worth on classes it has never seen: likelihood, divergences, one-shot recognition."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from vma.bounds import BoundTerms, decomposition, multi_sample_bound
from vma.data.dataset import Dataset
from vma.data.episodes import EpisodeTensors
from vma.data.samplers import EpisodeSampler
from vma.errors import InputError
from vma.evaluation.classification import Addresser, recognised
from vma.evaluation.statistics import Mean, Share, mean, wilson
from vma.memory import Memory

CLASSES, TARGETS, SHOTS = 8, 4, 4  # of an episode, as in training
WAYS = 5
CHUNK = 8  # targets at a time: K samples of more no longer fit into the processor's cache


@runtime_checkable
class Likelihood(Protocol):
    """A model that bounds log p(x|M): `VMA`, or a baseline."""

    def terms(
        self, x: Any, memory: Memory | None = None, samples: int = 4, *, generator: torch.Generator | None
    ) -> BoundTerms:
        """The terms of the bound."""

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """All weights."""


@runtime_checkable
class MemoryModel(Likelihood, Addresser, Protocol):
    """Both: `VMA`."""


@dataclass(frozen=True)
class Training:
    """How the two models were trained.

    Attributes:
        updates: Updates of the model with memory.
        vae_updates: Updates of the VAE.
        seconds: Time taken by both.
        classes: Number of classes trained on; none of them is measured on.
    """

    updates: int
    vae_updates: int
    seconds: float
    classes: int


@dataclass(frozen=True)
class Findings:
    """All numbers of a report, in nats per image where not said otherwise.

    Attributes:
        nll_vma: −L of the K-sample bound (eq. 7): an upper bound of −log p(x|M).
        nll_vae: The same of the VAE, on the same targets.
        gain: nll_vae − nll_vma, episode by episode; positive where the memory helps.
        kl_a: KL(q(a|x) ‖ p(a)).
        kl_z: E_q(a|x)[KL(q(z|m_a,x) ‖ p(z|m_a))].
        reconstruction: E_q[log p(x|m_a,z)].
        log_memory: log |M|, what it takes to name one item under a flat p(a).
        log_classes: log C, what it takes to name one class under a flat p(a).
        accuracy: Share of targets recognised among `ways` classes of which the memory holds one item each.
        ways: Number of classes to choose from; chance is 1 / ways.
        samples: K.
        episodes: Number of episodes.
        targets: Number of targets in all of them.
        memory: |M| of an episode.
        classes: C, the classes of an episode.
        unseen_classes: Number of classes they are drawn from.
        pixels: Pixels of an image.
        weights_vma: Number of weights.
        weights_vae: Number of weights.
        seed: Decides episodes and samples.
        dataset: Name and part of the data.
        provenance: Where the data comes from.
        training: How the models were trained.
    """

    nll_vma: Mean
    nll_vae: Mean
    gain: Mean
    kl_a: Mean
    kl_z: Mean
    reconstruction: Mean
    log_memory: float
    log_classes: float
    accuracy: Share
    ways: int
    samples: int
    episodes: int
    targets: int
    memory: int
    classes: int
    unseen_classes: int
    pixels: int
    weights_vma: int
    weights_vae: int
    seed: int
    dataset: str
    provenance: str
    training: Training


def measure(
    model: MemoryModel,
    vae: Likelihood,
    dataset: Dataset,
    training: Training,
    *,
    episodes: int = 12,
    samples: int = 64,
    trials: int = 1000,
    seed: int = 0,
) -> Findings:
    """All numbers of the report, of `model` and of a VAE, on the same episodes of unseen classes.

    Args:
        model: The model with memory.
        vae: The VAE it is compared with.
        dataset: Images of classes that neither has seen.
        training: How both were trained; it is passed on to the report.
        episodes: Episodes of 8 classes × 4 targets × 4 items, disjoint.
        samples: K, the same for both models.
        trials: Number of 5-way 1-shot questions.
        seed: Decides episodes and samples.
    """
    if episodes < 2:
        raise InputError(f"A standard error needs at least 2 episodes, not {episodes}.")
    sampler = EpisodeSampler(dataset, classes=CLASSES, targets=TARGETS, shots=SHOTS, seed=seed)
    drawn = [sampler.episode(step).tensors() for step in range(episodes)]
    ours, theirs = (likelihood(each, drawn, samples, seed) for each in (model, vae))
    memory = CLASSES * SHOTS
    return Findings(
        nll_vma=mean(ours[:, 0]),
        nll_vae=mean(theirs[:, 0]),
        gain=mean(theirs[:, 0] - ours[:, 0]),
        kl_a=mean(ours[:, 1]),
        kl_z=mean(ours[:, 2]),
        reconstruction=mean(ours[:, 3]),
        log_memory=math.log(memory),
        log_classes=math.log(CLASSES),
        accuracy=recognition(model, dataset, trials=trials, seed=seed),
        ways=WAYS,
        samples=samples,
        episodes=episodes,
        targets=sum(len(episode.targets) for episode in drawn),
        memory=memory,
        classes=CLASSES,
        unseen_classes=len(dataset.classes),
        pixels=math.prod(dataset.size),
        weights_vma=count_weights(model),
        weights_vae=count_weights(vae),
        seed=seed,
        dataset=f"{dataset.name} ({dataset.split})",
        provenance=dataset.provenance,
        training=training,
    )


def likelihood(
    model: Likelihood, episodes: list[EpisodeTensors], samples: int, seed: int
) -> Float[Tensor, "episodes 4"]:
    """−L, KL_a, KL_z and the reconstruction, each averaged over the targets of an episode."""
    generator = torch.Generator(next(model.parameters()).device).manual_seed(seed)
    return torch.stack([episode_means(model, episode, samples, generator) for episode in episodes])


@torch.no_grad()
def episode_means(
    model: Likelihood, episode: EpisodeTensors, samples: int, generator: torch.Generator
) -> Float[Tensor, "4"]:
    """−L, KL_a, KL_z and the reconstruction, averaged over the targets."""
    memory = Memory.of(episode.memory)
    chunks = (model.terms(x, memory, samples, generator=generator) for x in episode.targets.split(CHUNK))
    return torch.cat([per_target(terms) for terms in chunks], dim=1).mean(1).double().cpu()


def per_target(terms: BoundTerms) -> Float[Tensor, "4 batch"]:
    """−L, KL_a, KL_z and the reconstruction of every target."""
    parts = decomposition(terms)
    return torch.stack([-multi_sample_bound(terms), parts.kl_a, parts.kl_z, parts.reconstruction])


def recognition(
    model: Addresser, dataset: Dataset, *, ways: int = WAYS, shots: int = 1, trials: int = 1000, seed: int = 0
) -> Share:
    """Share of targets whose class is arg max_y Σ_a q(a|x) [label of m_a is y].

    Each trial is an episode of its own with one target, so that trials are independent. The target's class
    takes each place in turn: a model that cannot choose, and takes the first, is right by chance only.
    """
    sampler = EpisodeSampler(dataset, classes=1, distractors=ways - 1, targets=1, shots=shots, seed=seed)
    episodes = (sampler.episode(step).tensors() for step in range(trials))
    right = sum(recognised(model, episode, ways, step % ways) for step, episode in enumerate(episodes))
    return wilson(right, trials)


def count_weights(model: Likelihood) -> int:
    """Number of weights."""
    return sum(weight.numel() for weight in model.parameters())
