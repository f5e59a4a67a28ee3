"""`posterior`: where the model looks for targets that it finds, mistakes, or cannot find (Figure 3, supplement)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.addressing import class_mass
from vma.checks import check_counts
from vma.data.samplers import EpisodeSampler
from vma.evaluation.episodes import BY_CLASS
from vma.evaluation.json_values import PackedImages, pack, plain
from vma.evaluation.likelihood import bounds
from vma.evaluation.resumable import Evaluation
from vma.evaluation.statistics import Mean, area_under_curve, mean_of
from vma.evaluation.trained_run import TrainedRun
from vma.memory import Memory
from vma.model import VMA

Kind = Literal["found", "mistaken", "absent"]


@dataclass(frozen=True)
class PosteriorOptions:
    """q(a|x) of targets whose class is or is not in memory, and how well log p(x|M) tells these apart.

    Attributes:
        episodes: Number of episodes; the first one's are shown item by item.
        classes: Classes in memory; the targets of one more class are not in memory.
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


@dataclass(frozen=True)
class ShownImages:
    """The images of an episode."""

    memory: PackedImages
    targets: PackedImages


@dataclass(frozen=True)
class PosteriorRow:
    """One episode: a value for each target.

    Attributes:
        q: q(a|x).
        guesses: The class with the most mass of q(a|x).
        entropy: H(q(a|x)).
        kl_a: KL(q(a|x) ‖ p(a)).
        log_p: The K-sample bound of log p(x|M).
        labels: The target's class.
        shown: The images, for the first episode only.
        memory_labels: The class of each item in memory, for the first episode only.
    """

    q: list[list[float]]
    guesses: list[int]
    entropy: list[float]
    kl_a: list[float]
    log_p: list[float]
    labels: list[int]
    shown: ShownImages | None = None
    memory_labels: list[int] | None = None


@dataclass(frozen=True)
class AverageLook:
    """Means over targets, with their standard errors."""

    log_p: Mean
    entropy: Mean
    kl_a: Mean


@dataclass(frozen=True)
class LookUp:
    """One target.

    Attributes:
        kind: `found`, `mistaken`, or `absent` if its class is not in memory.
        index: Its number in the episode.
        label: Its class.
        q: q(a|x).
        log_p: The bound of log p(x|M).
        kl_a: KL(q(a|x) ‖ p(a)).
        entropy: H(q(a|x)).
    """

    kind: Kind
    index: int
    label: int
    q: list[float]
    log_p: float
    kl_a: float
    entropy: float


@dataclass(frozen=True)
class ShownEpisode(ShownImages):
    """An episode for a figure: its images, the class of each item in memory, and all targets."""

    memory_labels: list[int]
    looked_up: list[LookUp]


@dataclass(frozen=True)
class PosteriorResults:
    """Where the model looks, and what that reveals.

    Attributes:
        in_memory: Means over targets whose class is in memory.
        absent: Means over those whose class is not.
        found: Share of targets whose class gets the most mass of q(a|x), among those whose class is in memory.
        novelty_auc: The probability that a target of an absent class has the lower log p(x|M); ½ is guessing.
        novelty_auc_entropy: The probability that it has the higher entropy of q(a|x).
        shown: The first episode.
    """

    in_memory: AverageLook
    absent: AverageLook
    found: Mean
    novelty_auc: float
    novelty_auc_entropy: float
    shown: ShownEpisode


def posterior(trained: TrainedRun, options: PosteriorOptions) -> Evaluation[PosteriorRow, PosteriorResults]:
    """Where q(a|x) looks, for targets whose class is in memory and for others (Figure 3).

    >>> trained = vma.evaluation.open_run(run)  # what vma.train returned
    >>> options = vma.evaluation.PosteriorOptions(episodes=1, classes=2, shots=2, samples=4)
    >>> vma.evaluation.posterior(trained, options).results()
    PosteriorResults(...)
    """
    check_counts(options, episodes=1, classes=1, shots=1, targets=1, samples=1, seed=0)
    model = trained.with_raw_memory("be inspected")
    sampler = EpisodeSampler(
        trained.dataset, classes=options.classes + 1, targets=options.targets, shots=options.shots,
        seed=options.seed,
    )  # fmt: skip

    def part(number: int) -> PosteriorRow:
        episode = sampler.episode(number).tensors(trained.device)
        kept = episode.memory_labels < options.classes
        memory = Memory(episode.memory[kept], episode.memory_labels[kept])
        source = trained.generator(options.seed, number)
        row = look(model, episode.targets, episode.target_labels, memory, options.samples, source)
        row = replace(row, q=[[round(value, 6) for value in q] for q in row.q])
        if number:
            return row
        images = ShownImages(pack(memory.items), pack(episode.targets))
        return replace(row, shown=images, memory_labels=episode.memory_labels[kept].tolist())

    about = {**plain(trained.about), **asdict(options), "protocol": "disjoint", **BY_CLASS}
    return Evaluation("posterior", about, options.episodes, part, PosteriorRow, summary)


@torch.no_grad()
def look(
    model: VMA,
    x: Float[Tensor, "batch *image"],
    labels: Int[Tensor, "batch"],
    memory: Memory,
    samples: int,
    generator: torch.Generator,
) -> PosteriorRow:
    """q(a|x), the class it points to, KL_a and log p(x|M) of every target.

    Args:
        model: A model with addresses.
        x: Targets.
        labels: Their classes.
        memory: M, with the class of each item.
        samples: K of log p(x|M).
        generator: Source of randomness.
    """
    keyed = model.keyed(memory)
    q_a, p_a = model.posterior(x, keyed), model.prior(keyed)
    assert memory.labels is not None
    q = q_a.log_probs.exp()
    guesses = class_mass(q, memory.labels).argmax(-1)
    log_p = bounds(model, x, keyed, samples, generator=generator)
    return PosteriorRow(
        q=q.double().tolist(),
        guesses=guesses.tolist(),
        entropy=q_a.entropy().double().tolist(),
        kl_a=q_a.kl(p_a).double().tolist(),
        log_p=log_p.double().tolist(),
        labels=labels.tolist(),
    )


def summary(rows: list[PosteriorRow]) -> PosteriorResults:
    """Entropy and log p(x|M) of targets whose class is in memory and of the others, and an episode to show."""
    absent = max(max(row.labels) for row in rows)
    targets = [(number, each) for number, row in enumerate(rows) for each in look_ups(row, absent)]
    inside = [target for target in targets if target[1].kind != "absent"]
    outside = [target for target in targets if target[1].kind == "absent"]
    return PosteriorResults(
        in_memory=average(inside),
        absent=average(outside),
        found=mean_of([float(each.kind == "found") for _, each in inside], groups_of(inside)),
        novelty_auc=area_under_curve([each.log_p for _, each in outside], [each.log_p for _, each in inside]),
        novelty_auc_entropy=area_under_curve(
            [each.entropy for _, each in inside], [each.entropy for _, each in outside]
        ),
        shown=shown(rows[0], absent),
    )


def look_ups(row: PosteriorRow, absent: int) -> list[LookUp]:
    """All targets of an episode: found, mistaken or absent."""
    found = []
    for i, (label, guess) in enumerate(zip(row.labels, row.guesses, strict=True)):
        kind: Kind = "absent" if label == absent else "found" if label == guess else "mistaken"
        found.append(LookUp(kind, i, label, row.q[i], row.log_p[i], row.kl_a[i], row.entropy[i]))
    return found


def average(targets: Sequence[tuple[int, LookUp]]) -> AverageLook:
    """Means over targets, each with the number of its episode."""
    groups = groups_of(targets)
    return AverageLook(
        log_p=mean_of([each.log_p for _, each in targets], groups),
        entropy=mean_of([each.entropy for _, each in targets], groups),
        kl_a=mean_of([each.kl_a for _, each in targets], groups),
    )


def groups_of(targets: Sequence[tuple[int, LookUp]]) -> list[tuple[int, int]]:
    """Groups of dependent targets: those of one class in one episode."""
    return [(number, each.label) for number, each in targets]


def shown(row: PosteriorRow, absent: int) -> ShownEpisode:
    """The first episode: its memory, and every target."""
    assert row.shown is not None
    assert row.memory_labels is not None
    return ShownEpisode(row.shown.memory, row.shown.targets, row.memory_labels, look_ups(row, absent))
