"""`posterior`: where the model looks for targets that it finds, mistakes, or cannot find (Figure 3, supplement)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vma.addressing import class_mass
from vma.checks import check_counts
from vma.data.samplers import EpisodeSampler
from vma.evaluation.episodes import BY_CLASS
from vma.evaluation.images import pack
from vma.evaluation.likelihood import bounds
from vma.evaluation.resumable import Evaluation, Row
from vma.evaluation.statistics import area_under_curve, mean_of
from vma.evaluation.trained_run import TrainedRun
from vma.memory import Memory
from vma.model import VMA


@dataclass(frozen=True)
class PosteriorOptions:
    """q(a|x) of targets in memory of which their class is, and is not; how log p(x|M) tells the two apart.

    Attributes:
        episodes: Number of episodes; those of the first one are shown item by item.
        classes: Classes in memory; one more is drawn, whose targets are not in memory.
        shots: Items of each class.
        targets: Targets of each class.
        samples: K of log p(x|M).
        seed: Decides episodes and samples.
    """

    episodes: int = 8
    classes: int = 8
    shots: int = 10
    targets: int = 2
    samples: int = 64
    seed: int = 0


def posterior(trained: TrainedRun, options: PosteriorOptions) -> Evaluation:
    """The evaluation that `options` ask for."""
    check_counts(options, episodes=1, classes=1, shots=1, targets=1, samples=1, seed=0)
    model = trained.with_raw_memory("be inspected")
    sampler = EpisodeSampler(
        trained.dataset, classes=options.classes + 1, targets=options.targets, shots=options.shots,
        seed=options.seed,
    )  # fmt: skip

    def part(number: int) -> Row:
        episode = sampler.episode(number).tensors(trained.device)
        kept = episode.memory_labels < options.classes
        memory = Memory(episode.memory[kept], episode.memory_labels[kept])
        source = trained.generator(options.seed, number)
        row = look(model, episode.targets, memory, options, source)
        row["labels"] = episode.target_labels.tolist()
        if number == 0:
            row["shown"] = {"memory": pack(memory.items), "targets": pack(episode.targets)}
            row["memory_labels"] = episode.memory_labels[kept].tolist()
        return row

    about = {**trained.about, **asdict(options), "protocol": "disjoint", **BY_CLASS}
    return Evaluation("posterior", about, options.episodes, part, summary)


@torch.no_grad()
def look(
    model: VMA,
    x: Float[Tensor, "batch *image"],
    memory: Memory,
    options: PosteriorOptions,
    generator: torch.Generator,
) -> Row:
    """q(a|x), the class it points to, KL_a and log p(x|M) of every target."""
    q_a, p_a = model.posterior(x, memory), model.prior(memory)
    assert memory.labels is not None
    q = q_a.log_probs.exp()
    guesses = class_mass(q, memory.labels, options.classes).argmax(-1)
    log_p = bounds(model, x, memory, options.samples, generator=generator)
    return {
        "q": [[round(value, 6) for value in row] for row in q.double().tolist()],
        "guesses": guesses.tolist(),
        "entropy": q_a.entropy().double().tolist(),
        "kl_a": q_a.kl(p_a).double().tolist(),
        "log_p": log_p.double().tolist(),
    }


def summary(rows: list[Row]) -> dict[str, Any]:
    """Entropy and log p(x|M) of targets whose class is in memory and of those whose is not; what to show.

    `novelty_auc` is the chance that a target of an absent class has the lower log p(x|M), and
    `novelty_auc_entropy` that it has the higher entropy of q(a|x); ½ is no better than guessing.
    """
    absent = max(max(row["labels"]) for row in rows)
    inside = [(row, i) for row in rows for i, label in enumerate(row["labels"]) if label != absent]
    outside = [(row, i) for row in rows for i, label in enumerate(row["labels"]) if label == absent]
    both = {
        where: {
            name: asdict(mean_of(values(name, chosen), groups_of(chosen)))
            for name in ("log_p", "entropy", "kl_a")
        }
        for where, chosen in (("in_memory", inside), ("absent", outside))
    }
    right = [float(row["guesses"][i] == row["labels"][i]) for row, i in inside]
    return {
        **both,
        "found": asdict(mean_of(right, groups_of(inside))),
        "novelty_auc": area_under_curve(values("log_p", outside), values("log_p", inside)),
        "novelty_auc_entropy": area_under_curve(values("entropy", inside), values("entropy", outside)),
        "shown": shown(rows[0], absent),
    }


def values(name: str, chosen: Sequence[tuple[Row, int]]) -> list[float]:
    """One measure of the chosen targets."""
    return [row[name][i] for row, i in chosen]


def groups_of(chosen: Sequence[tuple[Row, int]]) -> list[tuple[int, int]]:
    """Which targets go together: those of one class in one episode."""
    return [(id(row), row["labels"][i]) for row, i in chosen]


def shown(row: Row, absent: int) -> dict[str, Any]:
    """The first episode: its memory, and every target, found, mistaken or absent."""
    targets = []
    for i, (label, guess) in enumerate(zip(row["labels"], row["guesses"], strict=True)):
        kind = "absent" if label == absent else "found" if label == guess else "mistaken"
        numbers = {name: row[name][i] for name in ("q", "log_p", "kl_a", "entropy")}
        targets.append({"kind": kind, "index": i, "label": label, **numbers})
    return {**row["shown"], "memory_labels": row["memory_labels"], "looked_up": targets}
