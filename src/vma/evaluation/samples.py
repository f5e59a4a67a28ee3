"""`samples`: draws from p(x|M), by item or by class; the probability of ink, and binary images."""

from dataclasses import asdict, dataclass, replace

import torch

from vma.checks import check_counts
from vma.evaluation.growing_memories import GrowingMemories
from vma.evaluation.json_values import PackedImages, pack, plain
from vma.evaluation.resumable import Evaluation
from vma.evaluation.trained_run import TrainedRun
from vma.generative_model import Samples
from vma.model import VMA


@dataclass(frozen=True)
class SamplesOptions:
    """Samples from p(x|M): one row for each of some items, or for each class if `shots` > 1.

    Attributes:
        rows: Number of items or classes; for a learned memory, of items drawn from p(a).
        samples: Samples in a row.
        shots: Items of a class; with more than one, the items of a row are drawn from p(a) within its class.
        real: Further drawings of the class, for comparison.
        seed: Decides classes, items and samples.
    """

    rows: int = 8
    samples: int = 9
    shots: int = 1
    real: int = 2
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class SamplesResults:
    """Images in rows; all arrays are [rows, columns, height, width].

    Attributes:
        items: The items in memory, for a raw memory.
        real: Further drawings of the class, for a raw memory.
        addresses: The item that all samples of a row share, for a learned memory.
        p_a: p(a) of these items, for a learned memory.
        probabilities: The samples as probabilities of ink.
        binary: The samples as binary images.
        shown: The samples as they are best shown; absent from answers of earlier versions.
    """

    items: PackedImages | None = None
    real: PackedImages | None = None
    addresses: list[int] | None = None
    p_a: list[float] | None = None
    probabilities: PackedImages
    binary: PackedImages
    shown: PackedImages | None = None


def samples(trained: TrainedRun, options: SamplesOptions) -> Evaluation[SamplesResults, SamplesResults]:
    """Samples of the model, a row for each of some items; made in one part.

    >>> trained = vma.evaluation.open_run(run)  # what vma.train returned
    >>> options = vma.evaluation.SamplesOptions(rows=2, samples=3)
    >>> vma.evaluation.samples(trained, options).results()
    SamplesResults(...)
    """
    check_counts(options, rows=1, samples=1, shots=1, real=0, seed=0)

    def part(number: int) -> SamplesResults:
        source = trained.generator(options.seed, number)
        if trained.model.config.learned_items and trained.addresses is not None:
            return from_learned(trained.addresses, options, source)
        if trained.model.config.model != "vae":
            return from_memory(trained, options, source)
        return in_rows(trained.model.sample(None, options.rows * options.samples, generator=source), options)

    about = {**plain(trained.about), **asdict(options)}
    return Evaluation("samples", about, 1, part, SamplesResults, lambda rows: rows[0])


@torch.no_grad()
def from_memory(trained: TrainedRun, options: SamplesOptions, source: torch.Generator) -> SamplesResults:
    """Rows of the first classes, each with a memory of that class alone."""
    memories = GrowingMemories(trained.dataset, max(1, options.real), options.shots, options.seed)
    rows = []
    for row in range(min(options.rows, len(trained.dataset.classes))):
        block = memories.block(1, row, options.shots)
        assert block.memory is not None
        memory = block.memory.to(torch.zeros((), device=trained.device))
        drawn = trained.model.sample(memory, options.samples, generator=source)
        rows.append((memory.items, block.targets, drawn.probabilities, drawn.images, drawn.shown))
    items, real, probabilities, binary, shown = (pack(torch.stack(kept)) for kept in zip(*rows, strict=True))
    return SamplesResults(items=items, real=real, probabilities=probabilities, binary=binary, shown=shown)


@torch.no_grad()
def from_learned(model: VMA, options: SamplesOptions, source: torch.Generator) -> SamplesResults:
    """Rows that share an m_a ~ p(a) of the learned memory."""
    p_a = model.prior()
    chosen = distinct(p_a.log_probs, options.rows, source)
    drawn = model.sample(addresses=chosen.repeat_interleave(options.samples), generator=source)
    p = p_a.log_probs[chosen].exp().double().tolist()
    return replace(in_rows(drawn, options), addresses=chosen.tolist(), p_a=p)


def in_rows(drawn: Samples, options: SamplesOptions) -> SamplesResults:
    """Samples that were drawn row by row."""
    images = (drawn.probabilities, drawn.images, drawn.shown)
    probabilities, binary, shown = (pack(each.unflatten(0, (-1, options.samples))) for each in images)
    return SamplesResults(probabilities=probabilities, binary=binary, shown=shown)


def distinct(log_probs: torch.Tensor, count: int, source: torch.Generator) -> torch.Tensor:
    """Up to `count` distinct addresses, drawn from p(a) without replacement."""
    noise = torch.empty_like(log_probs, dtype=torch.float64).exponential_(generator=source)
    return (log_probs - noise.log()).topk(min(count, len(log_probs))).indices
