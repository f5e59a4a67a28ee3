"""What the report's pictures show, computed by `vma.evaluation` on unseen classes; `vma.plotting` draws it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from vma.data.episodes import EpisodeTensors
from vma.data.samplers import EpisodeSampler
from vma.evaluation import SamplesOptions, TrainedRun, samples
from vma.evaluation.json_values import plain
from vma.evaluation.posterior import PosteriorRow, look
from vma.fewshot.trained import load
from vma.memory import Memory
from vma.model import VMA
from vma.plotting.embedding import unpack
from vma.plotting.grids import OneShot, one_shot_png
from vma.plotting.learning import learning_curves
from vma.plotting.lookups import Lookup, Lookups, lookups_png
from vma.pretrained import DEFAULT
from vma.quickstart.measure import CLASSES, SHOTS, TARGETS

FAR = 10**6  # an episode's number, far from those that are measured

Metrics = Mapping[str, Any]


@dataclass(frozen=True)
class Pictures:
    """PNG files by what they show; `curves` is None if there is no history."""

    samples: bytes
    addressing: bytes
    curves: bytes | None = None


def draw_pictures(
    trained: TrainedRun,
    history: Sequence[Metrics] = (),
    vae_history: Sequence[Metrics] = (),
    *,
    seed: int = 0,
    shipped: VMA | None = None,
) -> Pictures:
    """All pictures of a report.

    Args:
        trained: The model with memory, and images of unseen classes.
        history: Metrics of each update, with the keys update, nll, kl_a, kl_z and perhaps valid_nll.
        vae_history: The same for the VAE; only nll is drawn.
        seed: Decides which classes, images and samples are shown.
        shipped: A model whose samples from the same items are shown beside those of the trained one.
    """
    return Pictures(
        one_shot_png(beside(trained, shipped, seed)),
        lookups_png(addressing(trained, seed=seed)),
        learning_curves(history, vae_history) if history else None,
    )


def from_the_box() -> VMA:
    """The trained model that comes with the package."""
    return load(DEFAULT).model


def beside(trained: TrainedRun, shipped: VMA | None, seed: int) -> OneShot:
    """Samples of the trained model from single items and, if given, of the shipped model from the same items."""
    if shipped is None:
        return one_shot(trained, SamplesOptions(rows=8, samples=8, real=3, seed=seed))
    options = SamplesOptions(rows=8, samples=5, real=3, seed=seed)
    ours, theirs = (one_shot(replace(trained, model=model), options) for model in (trained.model, shipped))
    return replace(ours, title="imagined: trained here", others=(f"{DEFAULT}, from the box", theirs.imagined))


def one_shot(trained: TrainedRun, options: SamplesOptions) -> OneShot:
    """One item of each of some classes, alone in memory, with samples from p(x|m) and other drawings."""
    found = plain(samples(trained, options).results())
    return OneShot(unpack(found["items"]), unpack(found["shown"]), unpack(found["real"]))


# Where the model looks


def addressing(trained: TrainedRun, *, seed: int = 0) -> Lookups:
    """q(a|x) over a memory of 8 classes × 4 items, for four targets chosen by rule."""
    sampler = EpisodeSampler(trained.dataset, classes=CLASSES, targets=TARGETS, shots=SHOTS, seed=seed)
    episode = sampler.episode(FAR).tensors(trained.device)
    found = lookups(trained, episode, seed=seed)
    return Lookups(episode.memory.cpu().numpy(), episode.memory_labels.cpu().numpy(), found)


def lookups(
    trained: TrainedRun, episode: EpisodeTensors, *, samples: int = 64, seed: int = 0
) -> list[Lookup]:
    """The most, the median and the least certain target by the entropy of q(a|x); the first without its class."""
    model, source = trained.with_raw_memory("be inspected"), trained.generator(seed, 0)
    x, labels, memory = episode.targets, episode.target_labels, Memory(episode.memory, episode.memory_labels)
    row = look(model, x, labels, memory, samples, source)
    order = np.argsort(row.entropy, kind="stable").tolist()
    first, count = order[0], len(order)
    without = replace(memory, mask=episode.memory_labels != labels[first])
    again = look(model, x[first, None], labels[first, None], without, samples, source)
    return [
        lookup(f"the most certain of {count} targets", x[first], memory, row, first),
        lookup("the median", x[order[count // 2]], memory, row, order[count // 2]),
        lookup("the least certain", x[order[-1]], memory, row, order[-1]),
        lookup("the first one again, its class taken out of memory", x[first], without, again, 0),
    ]


def lookup(title: str, x: Float[Tensor, "*image"], memory: Memory, row: PosteriorRow, number: int) -> Lookup:
    """Target `number` of a row, for the picture."""
    q, kept = np.array(row.q[number]), memory.in_use().cpu().numpy()
    return Lookup(title, x.cpu().numpy(), row.labels[number], q, row.log_p[number], kept)
