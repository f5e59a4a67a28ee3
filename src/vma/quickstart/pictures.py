"""What the report's pictures show, asked of the model on unseen classes; `vma.plotting` draws it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vma.data.dataset import Dataset
from vma.data.episodes import EpisodeTensors
from vma.data.randomness import stream
from vma.data.samplers import EpisodeSampler
from vma.memory import Memory
from vma.model import Samples
from vma.plotting.grids import OneShot, one_shot_png
from vma.plotting.learning import learning_curves
from vma.plotting.lookups import Lookup, Lookups, lookups_png
from vma.quickstart.measure import CLASSES, SHOTS, TARGETS, MemoryModel

ONE_SHOT = 11  # purpose of the random stream
FAR = 10**6  # an episode's number, far from those that are measured

Metrics = Mapping[str, Any]


@runtime_checkable
class Imagining(MemoryModel, Protocol):
    """A model that also samples from p(x|M)."""

    def sample(
        self,
        memory: Memory | None = None,
        samples: int = 16,
        *,
        addresses: Int[Tensor, "samples"] | None = None,
        generator: torch.Generator | None = None,
    ) -> Samples:
        """Draws from p(x|M)."""


@dataclass(frozen=True)
class Pictures:
    """PNG files by what they show; `curves` is None where there is no history."""

    samples: bytes
    addressing: bytes
    curves: bytes | None = None


def draw_pictures(
    model: Imagining,
    dataset: Dataset,
    history: Sequence[Metrics] = (),
    vae_history: Sequence[Metrics] = (),
    *,
    seed: int = 0,
) -> Pictures:
    """All pictures of a report.

    Args:
        model: The model with memory.
        dataset: Images of unseen classes.
        history: Metrics of each update, with the keys update, nll, kl_a, kl_z and perhaps valid_nll.
        vae_history: The same of the VAE; only nll is drawn.
        seed: Decides which classes, images and samples are shown.
    """
    return Pictures(
        one_shot_png(one_shot(model, dataset, seed=seed)),
        lookups_png(addressing(model, dataset, seed=seed)),
        learning_curves(history, vae_history) if history else None,
    )


# One-shot samples


def one_shot(
    model: Imagining, dataset: Dataset, *, rows: int = 8, samples: int = 8, real: int = 3, seed: int = 0
) -> OneShot:
    """One template of each of some classes, `samples` from p(x|m), and `real` other drawings."""
    indices = choose_drawings(dataset, rows, 1 + real, seed)
    drawings = dataset.images[indices].astype(np.float32) / 255
    memory = Memory.of(torch.from_numpy(drawings[:, 0]))
    return OneShot(drawings[:, :1], imagine(model, memory, samples, seed), drawings[:, 1:])


def choose_drawings(dataset: Dataset, rows: int, columns: int, seed: int) -> Int[np.ndarray, "rows columns"]:
    """Indices of `columns` images of each of `rows` classes, all of them drawn at random by `seed`."""
    draw = stream(seed, purpose=ONE_SHOT)
    labels = dataset.class_labels()
    large = np.flatnonzero(dataset.class_counts() >= columns)
    classes = draw.permutation(large)[:rows]
    return np.stack([draw.permutation(np.flatnonzero(labels == c))[:columns] for c in classes])


def imagine(
    model: Imagining, memory: Memory, samples: int, seed: int
) -> Float[np.ndarray, "memory samples *image"]:
    """For each item alone, `samples` times z ~ p(z|m), as a figure shows them."""
    generator = torch.Generator(next(model.parameters()).device).manual_seed(seed)
    addresses = torch.arange(len(memory), device=generator.device).repeat_interleave(samples)
    drawn = model.sample(memory, addresses=addresses, generator=generator)
    return drawn.shown.unflatten(0, (len(memory), samples)).cpu().float().numpy()


# Where the model looks


def addressing(model: MemoryModel, dataset: Dataset, *, samples: int = 64, seed: int = 0) -> Lookups:
    """q(a|x) over a memory of 8 classes × 4 items, for four targets chosen by rule."""
    sampler = EpisodeSampler(dataset, classes=CLASSES, targets=TARGETS, shots=SHOTS, seed=seed)
    episode = sampler.episode(FAR).tensors()
    found = lookups(model, episode, samples, seed)
    return Lookups(episode.memory.numpy(), episode.memory_labels.numpy(), found)


@torch.no_grad()
def lookups(model: MemoryModel, episode: EpisodeTensors, samples: int, seed: int) -> list[Lookup]:
    """The most, the median and the least certain target by the entropy of q(a|x); the first without its class."""
    entropy = model.posterior(episode.targets, Memory.of(episode.memory)).entropy()
    order = entropy.argsort(stable=True).tolist()
    count = len(order)
    everything = torch.ones(len(episode.memory), dtype=torch.bool)
    without = episode.memory_labels != episode.target_labels[order[0]]
    chosen = [
        (f"the most certain of {count} targets", order[0], everything),
        ("the median", order[count // 2], everything),
        ("the least certain", order[-1], everything),
        ("the first one again, its class taken out of memory", order[0], without),
    ]
    return [look_up(model, episode, *each, samples=samples, seed=seed) for each in chosen]


def look_up(
    model: MemoryModel,
    episode: EpisodeTensors,
    title: str,
    target: int,
    kept: Bool[Tensor, "memory"],
    *,
    samples: int,
    seed: int,
) -> Lookup:
    """q(a|x) and the bound of log p(x|M) for one target, with the `kept` items alone in memory."""
    generator = torch.Generator(next(model.parameters()).device).manual_seed(seed)
    x, memory = episode.targets[target : target + 1], Memory.of(episode.memory).keep(kept)
    q = np.zeros(len(kept))
    q[kept.numpy()] = model.posterior(x, memory).log_probs[0].exp().cpu().numpy()
    terms = model.terms(x, memory, samples, generator=generator)
    bound = torch.logsumexp(terms.log_mass + terms.log_w, -1)
    return Lookup(title, x[0].numpy(), int(episode.target_labels[target]), q, float(bound), kept.numpy())
