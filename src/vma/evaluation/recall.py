"""`recall`: does a model find items of a memory on disk again, or others of their label?"""

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from vma.addressing import AddressDistribution
from vma.checks import check_counts
from vma.data.randomness import stream
from vma.errors import InputError
from vma.evaluation.json_values import plain
from vma.evaluation.likelihood import AverageMeasures, TargetMeasures, averages, of_terms, pooled
from vma.evaluation.resumable import Evaluation, TargetResults
from vma.evaluation.statistics import Mean, mean_of
from vma.evaluation.trained_run import TrainedRun
from vma.fewshot import LargeMemory
from vma.large import CANDIDATES, SearchedItems, is_large
from vma.proposals import NOWHERE
from vma.storage import identity

AT_ONCE = 8  # targets of a part of the work
DRAWN = 23  # purpose of the random stream


@dataclass(frozen=True)
class RecallOptions:
    """Items of a memory on disk (`vma memory build`), asked for again: −log p(x|M), and whether they are found.

    Attributes:
        index: The memory's folder.
        targets: Number of items that are asked for, drawn at random.
        leave_out: Leave each out of the memory while it is asked for, and look for others of its label.
        candidates: Items that a search finds.
        samples: K; the best candidates are summed exactly, and a quarter of the reads is drawn outside of these.
        seed: Decides targets and samples.
    """

    index: Path = Path()
    targets: int = 64
    leave_out: bool = False
    candidates: int = CANDIDATES
    samples: int = 64
    seed: int = 0


@dataclass(frozen=True)
class RecallRow:
    """Some targets.

    Attributes:
        targets: What is measured of each.
        own_mass: Mass of softmax S over what the search found on the target's own item, or on others of its label.
        own_first: Whether the first of what was found is such an item, as 0 or 1.
    """

    targets: TargetMeasures
    own_mass: list[float]
    own_first: list[float]


@dataclass(frozen=True, kw_only=True)
class RecallResults(AverageMeasures, TargetResults):
    """Means over all targets; see `RecallRow`."""

    own_mass: Mean
    own_first: Mean
    items: int


def recall(trained: TrainedRun, options: RecallOptions) -> Evaluation[RecallRow, RecallResults]:
    """Whether items of a memory on disk, or others of their label, are found in it again.

    >>> trained = vma.evaluation.open_run(run)  # what vma.train returned
    >>> memory = vma.load(run.folder).create_memory("memory", index="exact")
    >>> numbers = memory.add(list(trained.dataset.images[:20]))
    >>> options = vma.evaluation.RecallOptions(index=Path("memory"), targets=4, samples=4)
    >>> vma.evaluation.recall(trained, options).results()
    RecallResults(...)
    """
    check_counts(options, targets=1, candidates=1, samples=1, seed=0)
    memory = opened(trained, options)
    items = chosen(memory, options)
    blocks = np.array_split(items, -(-len(items) // AT_ONCE))

    def part(number: int) -> RecallRow:
        source = trained.generator(options.seed, number)
        return joined([row_of(memory, int(item), options, source) for item in blocks[number]])

    def summary(rows: list[RecallRow]) -> RecallResults:
        row = joined(rows)
        groups = list(range(len(row.own_mass)))
        own = {"own_mass": mean_of(row.own_mass, groups), "own_first": mean_of(row.own_first, groups)}
        return RecallResults(
            number_of_targets=len(groups), items=len(memory), **own, **averages(row.targets, groups)
        )

    manifest = memory.snapshot.manifest
    held = {"index": memory.folder.name, "items": len(memory), "total": manifest.total}
    about = {**plain(trained.about), **asdict(options), **held}
    return Evaluation("recall", about, len(blocks), part, RecallRow, summary)


def opened(trained: TrainedRun, options: RecallOptions) -> LargeMemory:
    """The memory, whose keys have to be those of the model."""
    if not is_large(options.index):
        raise InputError(
            f"{options.index} is not a memory on disk: name one with --index, as 'vma memory build' makes it."
        )
    model = trained.with_raw_memory("recall")
    return LargeMemory(model, identity(model), options.index, candidates=options.candidates)


def chosen(memory: LargeMemory, options: RecallOptions) -> Int[np.ndarray, "targets"]:
    """The items that are asked for; with `leave_out` they share their label with another."""
    items = memory.snapshot.alive()
    if options.leave_out:
        labels = memory.snapshot.labels[items]
        counts = np.bincount(labels[labels >= 0], minlength=1)
        items = items[(labels >= 0) & (counts[np.maximum(labels, 0)] > 1)]
    if not len(items):
        raise InputError(f"{memory.folder} has no items that share a label: leave --leave-out away.")
    order = stream(options.seed, purpose=DRAWN).permutation(len(items))
    return items[order[: options.targets]]


@torch.no_grad()
def row_of(memory: LargeMemory, item: int, options: RecallOptions, source: torch.Generator) -> RecallRow:
    """One target."""
    x = memory.items_at(item).to(next(memory.model.parameters()))
    searched, own = memory.searched, np.array([item])
    if options.leave_out:
        label = memory.labels_at(own)[0]
        own = np.setdiff1d(memory.snapshot.of_label(str(label)), own)
        searched = searched.without(np.array([item]))
    terms = memory.model.terms(x, searched, options.samples, sampling="stratified", generator=source)
    mass, first = found_again(memory, searched, x, own)
    return RecallRow(of_terms(terms), [mass], [first])


def found_again(
    memory: LargeMemory, searched: SearchedItems, x: Tensor, own: Int[np.ndarray, "own"]
) -> tuple[float, float]:
    """The mass of softmax S over what a search finds on some items, and whether the largest S is one of theirs."""
    similarity, queries = memory.model.addressing.similarity, memory.model.addressing.queries(x)
    found = searched.search(similarity.queries(queries))[0]
    found = found[found != NOWHERE]
    q = AddressDistribution.of_scores(similarity.scores(searched.keys(found).to(queries), queries[0]))
    ours = torch.from_numpy(np.isin(found.numpy(), own))
    return float(q.log_probs.exp()[ours].sum()), float(ours[q.log_probs.argmax()])


def joined(rows: list[RecallRow]) -> RecallRow:
    """The rows of all."""
    return RecallRow(
        pooled([row.targets for row in rows]),
        [value for row in rows for value in row.own_mass],
        [value for row in rows for value in row.own_first],
    )
