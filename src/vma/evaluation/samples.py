"""`samples`: draws from p(x|M), by item or by class; the probability of ink, and binary images."""

from dataclasses import asdict, dataclass
from typing import Any

import torch

from vma.checks import check_counts
from vma.evaluation.growing_memories import GrowingMemories
from vma.evaluation.images import pack
from vma.evaluation.resumable import Evaluation, Row
from vma.evaluation.trained_run import TrainedRun
from vma.model import VMA


@dataclass(frozen=True)
class SamplesOptions:
    """Samples from p(x|M): a row for each of some items, or for each class with `shots` > 1.

    Attributes:
        rows: Number of items or classes; of items drawn from p(a) for a learned memory.
        samples: Samples in a row.
        shots: Items of a class: with more than one, a row's items are drawn from p(a) within its class.
        real: Further drawings of the class to compare with.
        seed: Decides classes, items and samples.
    """

    rows: int = 8
    samples: int = 9
    shots: int = 1
    real: int = 2
    seed: int = 0


def samples(trained: TrainedRun, options: SamplesOptions) -> Evaluation:
    """The evaluation that `options` ask for, in one part."""
    check_counts(options, rows=1, samples=1, shots=1, real=0, seed=0)

    def part(number: int) -> Row:
        source = trained.generator(options.seed, number)
        raw = trained.model.config.model != "vae" and not trained.model.config.learned_items
        return from_memory(trained, options, source) if raw else from_model(trained, options, source)

    about = {**trained.about, **asdict(options)}
    return Evaluation("samples", about, 1, part, lambda rows: rows[0])


@torch.no_grad()
def from_memory(trained: TrainedRun, options: SamplesOptions, source: torch.Generator) -> Row:
    """Rows of the first classes, each with a memory of that class alone."""
    nested = GrowingMemories(trained.dataset, max(1, options.real), options.shots, options.seed)
    found: dict[str, list[torch.Tensor]] = {
        "items": [],
        "real": [],
        "probabilities": [],
        "binary": [],
        "shown": [],
    }
    for row in range(min(options.rows, len(trained.dataset.classes))):
        block = nested.block(1, row, options.shots)
        assert block.memory is not None
        memory = block.memory.to(torch.zeros((), device=trained.device))
        drawn = trained.model.sample(memory, options.samples, generator=source)
        images = (memory.items, block.targets, drawn.probabilities, drawn.images, drawn.shown)
        for kept, new in zip(found.values(), images, strict=True):
            kept.append(new)
    return {name: pack(torch.stack(kept)) for name, kept in found.items()}


@torch.no_grad()
def from_model(trained: TrainedRun, options: SamplesOptions, source: torch.Generator) -> Row:
    """Rows that share an m_a ~ p(a) of the learned memory; for a VAE, rows that share nothing."""
    model, shape = trained.model, (options.rows, options.samples)
    if isinstance(model, VMA):
        p_a = model.prior()
        chosen = distinct(p_a.log_probs, options.rows, source)
        drawn = model.sample(addresses=chosen.repeat_interleave(options.samples), generator=source)
        about: dict[str, Any] = {
            "addresses": chosen.tolist(), "p_a": p_a.log_probs[chosen].exp().double().tolist(),
        }  # fmt: skip
    else:
        drawn, about = model.sample(None, options.rows * options.samples, generator=source), {}
    images = {"probabilities": drawn.probabilities, "binary": drawn.images, "shown": drawn.shown}
    return {**about, **{name: pack(each.unflatten(0, shape)) for name, each in images.items()}}


def distinct(log_probs: torch.Tensor, count: int, source: torch.Generator) -> torch.Tensor:
    """Up to `count` distinct addresses, drawn from p(a) without replacement."""
    noise = torch.empty_like(log_probs, dtype=torch.float64).exponential_(generator=source)
    return (log_probs - noise.log()).topk(min(count, len(log_probs))).indices
