"""`samples`: draws from p(x|M), by item or by class; the probability of ink, and binary images."""

from dataclasses import asdict, dataclass
from typing import Any

import torch

from vma.checks import check_counts
from vma.evaluation.images import pack
from vma.evaluation.nested import NestedMemories
from vma.evaluation.subject import Subject
from vma.evaluation.units import Evaluation, Row
from vma.model import VMA


@dataclass(frozen=True)
class SamplesQuestion:
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


def samples(subject: Subject, question: SamplesQuestion) -> Evaluation:
    """The evaluation that answers `question`, in one unit."""
    check_counts(question, rows=1, samples=1, shots=1, real=0, seed=0)

    def unit(number: int) -> Row:
        source = subject.generator(question.seed, number)
        raw = subject.model.config.model != "vae" and not subject.model.config.learned_items
        return from_memory(subject, question, source) if raw else from_model(subject, question, source)

    about = {**subject.about, **asdict(question)}
    return Evaluation("samples", about, 1, unit, lambda rows: rows[0])


@torch.no_grad()
def from_memory(subject: Subject, question: SamplesQuestion, source: torch.Generator) -> Row:
    """Rows of the first classes, each with a memory of that class alone."""
    nested = NestedMemories(subject.dataset, max(1, question.real), question.shots, question.seed)
    found: dict[str, list[torch.Tensor]] = {
        "items": [],
        "real": [],
        "probabilities": [],
        "binary": [],
        "shown": [],
    }
    for row in range(min(question.rows, len(subject.dataset.classes))):
        block = nested.block(1, row, question.shots)
        assert block.memory is not None
        memory = block.memory.to(torch.zeros((), device=subject.device))
        drawn = subject.model.sample(memory, question.samples, generator=source)
        images = (memory.items, block.targets, drawn.probabilities, drawn.images, drawn.shown)
        for kept, new in zip(found.values(), images, strict=True):
            kept.append(new)
    return {name: pack(torch.stack(kept)) for name, kept in found.items()}


@torch.no_grad()
def from_model(subject: Subject, question: SamplesQuestion, source: torch.Generator) -> Row:
    """Rows that share an m_a ~ p(a) of the learned memory; for a VAE, rows that share nothing."""
    model, shape = subject.model, (question.rows, question.samples)
    if isinstance(model, VMA):
        p_a = model.prior()
        chosen = distinct(p_a.log_probs, question.rows, source)
        drawn = model.sample(addresses=chosen.repeat_interleave(question.samples), generator=source)
        about: dict[str, Any] = {
            "addresses": chosen.tolist(), "p_a": p_a.log_probs[chosen].exp().double().tolist(),
        }  # fmt: skip
    else:
        drawn, about = model.sample(None, question.rows * question.samples, generator=source), {}
    images = {"probabilities": drawn.probabilities, "binary": drawn.images, "shown": drawn.shown}
    return {**about, **{name: pack(each.unflatten(0, shape)) for name, each in images.items()}}


def distinct(log_probs: torch.Tensor, count: int, source: torch.Generator) -> torch.Tensor:
    """Up to `count` distinct addresses, drawn from p(a) without replacement."""
    noise = torch.empty_like(log_probs, dtype=torch.float64).exponential_(generator=source)
    return (log_probs - noise.log()).topk(min(count, len(log_probs))).indices
