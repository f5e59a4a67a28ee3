"""`nll`: −log p(x|M) on episodes of unseen classes, and its decomposition."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float

from vma.checks import check_counts
from vma.data.episodes import Episode
from vma.data.samplers import BatchSampler, EpisodeSampler, RecallSampler
from vma.evaluation.json_values import plain
from vma.evaluation.likelihood import (
    AverageMeasures,
    TargetMeasures,
    averages,
    groups_of,
    measures,
    pooled,
)
from vma.evaluation.resumable import Evaluation, TargetResults
from vma.evaluation.trained_run import TrainedRun
from vma.generative_model import AnyMemory
from vma.memory import Memory
from vma.model import VMA

# Part of `about`, so that answers with errors of another kind are never taken for answers of this evaluation.
BY_CLASS = {"errors": "targets of a class and episode are one group"}


@dataclass(frozen=True)
class NllOptions:
    """−log p(x|M) by the K-sample bound on test episodes, by default such as the model was trained on.

    Attributes:
        episodes: Number of episodes; a learned memory and a VAE get batches of targets instead.
        classes: Classes of an episode that have targets; 0 for as many as in training.
        targets: Targets of each class; of the whole episode for recall and batches; 0 for as many as in training.
        shots: Memory items of each class; |M| for recall; 0 for as many as in training.
        distractors: Further classes that are in memory only.
        protocol: `disjoint`: no target is in memory. `with-replacement`: drawn as in the public GMN code.
        counts: `per-class`, or `total`: targets and shots are numbers of the whole episode.
        samples: K.
        sampling: `independent` (the paper's bound), or `adaptive`, a tighter one at the same cost.
        seed: Decides episodes and samples.
    """

    episodes: int = 8
    classes: int = 0
    targets: int = 0
    shots: int = 0
    distractors: int = 0
    protocol: Literal["disjoint", "with-replacement"] = "disjoint"
    counts: Literal["per-class", "total"] = "per-class"
    samples: int = 1000
    sampling: Literal["independent", "adaptive"] = "independent"
    seed: int = 0


@dataclass(frozen=True)
class MemoryUse:
    """How much of a memory is in use.

    Attributes:
        entropy_p_a: H(p(a)).
        entropy_average_q_a: The entropy of q(a|x) averaged over the targets.
        items_in_use: Items that get more than 1/(10 |M|) of that average; for a raw memory, the mean over episodes.
        items: |M|.
    """

    entropy_p_a: float
    entropy_average_q_a: float
    items_in_use: int | float
    items: int | float


@dataclass(frozen=True)
class NllRow:
    """One episode.

    Attributes:
        targets: What is measured of each target.
        groups: The class of each target; the likelihoods of one class's targets are alike.
        q_a: q(a|x) averaged over the targets, for a learned memory.
        p_a: p(a), for a learned memory.
        use: How much of the memory is in use, for a raw one.
    """

    targets: TargetMeasures
    groups: list[int]
    q_a: list[float] | None = None
    p_a: list[float] | None = None
    use: MemoryUse | None = None


@dataclass(frozen=True, kw_only=True)
class NllResults(AverageMeasures, TargetResults):
    """Means over all targets; for a model with addresses, also how much of its memory is in use (`MemoryUse`)."""

    entropy_p_a: float | None = None
    entropy_average_q_a: float | None = None
    items_in_use: int | float | None = None
    items: int | float | None = None


def nll(trained: TrainedRun, options: NllOptions) -> Evaluation[NllRow, NllResults]:
    """−log p(x|M) of classes that training never saw, with its parts: reconstruction, KL_a and KL_z.

    >>> trained = vma.evaluation.open_run(run)  # what vma.train returned
    >>> options = vma.evaluation.NllOptions(episodes=2, samples=4)
    >>> vma.evaluation.nll(trained, options).results()
    NllResults(number_of_targets=..., nll=Mean(value=..., error=...), ...)
    """
    check_counts(options, episodes=1, classes=0, targets=0, shots=0, distractors=0, samples=1, seed=0)
    sampler = open_sampler(trained, options)

    def part(number: int) -> NllRow:
        episode = sampler.episode(number)
        x, raw = tensors(trained, episode)
        memory = trained.keyed(raw)
        source = trained.generator(options.seed, number)
        found = measures(
            trained.model, x, memory, options.samples, sampling=options.sampling, generator=source
        )
        alone = isinstance(sampler, BatchSampler)
        groups = list(range(len(x))) if alone else episode.target_labels.tolist()
        row = NllRow(found, groups)
        return row if trained.addresses is None else with_addresses(row, trained.addresses, x, memory)

    about = {**plain(trained.about), **asdict(options), **resolved(sampler), **BY_CLASS}
    return Evaluation("nll", about, options.episodes, part, NllRow, summary)


def open_sampler(trained: TrainedRun, options: NllOptions) -> EpisodeSampler | RecallSampler | BatchSampler:
    """Test episodes of the kind that the model was trained on, with the numbers of `options`."""
    episode = trained.episode
    targets, shots = options.targets or episode.targets, options.shots or episode.shots
    if episode.kind == "batch" or trained.model.config.learned_items:
        return BatchSampler(trained.dataset, batch=targets, seed=options.seed)
    if episode.kind == "recall":
        return RecallSampler(trained.dataset, memory=shots, targets=targets, seed=options.seed)
    return EpisodeSampler(
        trained.dataset, classes=options.classes or episode.classes, targets=targets, shots=shots,
        distractors=options.distractors, protocol=options.protocol, counts=options.counts, seed=options.seed,
    )  # fmt: skip


def resolved(sampler: EpisodeSampler | RecallSampler | BatchSampler) -> dict[str, Any]:
    """The actual numbers of an episode, with zeros replaced."""
    if isinstance(sampler, BatchSampler):
        return {"kind": "batch", "targets": sampler.batch, "protocol": "no raw memory"}
    if isinstance(sampler, RecallSampler):
        kept = {"targets": sampler.targets, "shots": sampler.memory}
        return {"kind": "recall", "protocol": "target in memory", **kept}
    shots = [int(each) for each in np.unique(sampler.shots)]
    return {
        "kind": "few-shot", "classes": sampler.target_classes, "targets": sampler.targets,
        "shots": shots[0] if len(shots) == 1 else shots,
    }  # fmt: skip


def tensors(trained: TrainedRun, episode: Episode) -> tuple[torch.Tensor, Memory | None]:
    """Targets and memory on the model's device; the memory is None if it is not a raw one."""
    found = episode.tensors(trained.device)
    without = len(found.memory) == 0 or trained.model.config.learned_items
    return found.targets, None if without else Memory(found.memory, found.memory_labels)


@torch.no_grad()
def with_addresses(row: NllRow, model: VMA, x: torch.Tensor, memory: AnyMemory) -> NllRow:
    """The row with p(a) and the average q(a|x) of a learned memory; for a raw one, only how much is in use."""
    q = model.posterior(x, memory).log_probs.double().exp().mean(0)
    p = model.prior(memory).log_probs.double().exp()
    if model.config.learned_items:
        return replace(row, q_a=q.tolist(), p_a=p.tolist())
    return replace(row, use=use_of(p.cpu().numpy(), q.cpu().numpy()))


def summary(rows: list[NllRow]) -> NllResults:
    """Means over all targets with standard errors; for a learned memory, how much of it is in use."""
    measured = pooled([row.targets for row in rows])
    means = averages(measured, groups_of([row.groups for row in rows]))
    use = usage(rows)
    return NllResults(number_of_targets=len(measured.nll), **means, **(plain(use) if use else {}))


def usage(rows: list[NllRow]) -> MemoryUse | None:
    """How much of the memory is in use: a learned one by all targets, a raw one by those of its episode."""
    if looked := [row.q_a for row in rows if row.q_a is not None]:
        return use_of(np.array(rows[0].p_a), np.mean(looked, axis=0))
    uses = [plain(row.use) for row in rows if row.use is not None]
    return MemoryUse(**{key: float(np.mean([use[key] for use in uses])) for key in uses[0]}) if uses else None


def use_of(p: Float[np.ndarray, "memory"], q: Float[np.ndarray, "memory"]) -> MemoryUse:
    """Entropies of p(a) and of the average q(a|x), and the number of items that get more than 1/(10 |M|) of it."""
    return MemoryUse(entropy(p), entropy(q), items_in_use=int((q > 0.1 / len(q)).sum()), items=len(q))


def entropy(p: Float[np.ndarray, "n"]) -> float:
    """−Σ p log p, in nats."""
    positive = p[p > 0]
    return float(-(positive * np.log(positive)).sum())
