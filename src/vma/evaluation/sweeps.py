"""`classes` and `shots`: the same targets as the memory grows (Figure 5), beside the log C line."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch

from vma.addressing import AddressDistribution, class_mass
from vma.checks import check_counts
from vma.errors import InputError
from vma.evaluation.episodes import BY_CLASS
from vma.evaluation.growing_memories import GrowingMemories
from vma.evaluation.json_values import plain
from vma.evaluation.likelihood import AverageMeasures, TargetMeasures, averages, groups_of, measures, pooled
from vma.evaluation.resumable import Evaluation, TargetResults
from vma.evaluation.statistics import Mean, mean_of
from vma.evaluation.trained_run import TrainedRun
from vma.memory import Memory


@dataclass(frozen=True)
class ClassesOptions:
    """−log p(x|M) of the same targets as the memory gets more confounding classes (Figure 5A).

    Attributes:
        classes: Numbers of classes in memory; those larger than the data's are left out, and 0 stands for all.
        shots: Items of each class; 0 for as many as in training.
        targets: Targets of each class of the data.
        samples: K.
        sampling: `independent` (the paper's bound), or `adaptive`, a tighter one at the same cost.
        seed: Decides targets, items and samples.
    """

    classes: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 0)
    shots: int = 0
    targets: int = 1
    samples: int = 1000
    sampling: Literal["independent", "adaptive"] = "independent"
    seed: int = 0


@dataclass(frozen=True)
class ShotsOptions:
    """−log p(x|M) of the same targets as each class gets more items in memory (Figure 5B).

    Attributes:
        shots: Numbers of items of each class.
        classes: Classes in memory; 0 for all classes of the data.
        targets: Targets of each class of the data.
        samples: K.
        sampling: `independent` (the paper's bound), or `adaptive`, a tighter one at the same cost.
        seed: Decides targets, items and samples.
    """

    shots: tuple[int, ...] = (1, 2, 4, 8, 12, 16, 19)
    classes: int = 0
    targets: int = 1
    samples: int = 1000
    sampling: Literal["independent", "adaptive"] = "independent"
    seed: int = 0


@dataclass(frozen=True)
class SweepSetting:
    """C classes in memory, with equally many shots each."""

    classes: int
    shots: int


@dataclass(frozen=True)
class SweepPart(SweepSetting):
    """A part of a sweep: one block of one setting."""

    block: int


@dataclass(frozen=True)
class SweepMeasures(TargetMeasures):
    """What is measured of each target.

    Attributes:
        own_class_mass: Σ_a q(a|x) [m_a is of the target's class], for a model with addresses.
        own_class_first: 1 if no other class has more mass, else 0.
    """

    own_class_mass: list[float] | None = None
    own_class_first: list[float] | None = None


@dataclass(frozen=True)
class SweepRow(SweepPart):
    """The measures of the targets of one part, and the class of each."""

    targets: SweepMeasures
    groups: list[int]

    @property
    def setting(self) -> SweepSetting:
        """The point of the sweep that it belongs to."""
        return SweepSetting(self.classes, self.shots)


@dataclass(frozen=True, kw_only=True)
class SweepPoint(AverageMeasures, SweepSetting):
    """One setting.

    Attributes:
        memory: |M|.
        own_class_mass: Mass of q(a|x) on the target's class, for a model with addresses.
        own_class_first: Share of targets whose own class has the most mass.
        rise: How far the NLL is above that of the first setting, target by target.
        line: The NLL at the fewest classes C₀ plus log C/C₀: that of an optimal model of disjoint classes.
    """

    memory: int
    own_class_mass: Mean | None = None
    own_class_first: Mean | None = None
    rise: Mean
    line: float


@dataclass(frozen=True, kw_only=True)
class SweepResults(TargetResults):
    """All settings, in their order."""

    points: list[SweepPoint]


def classes_sweep(trained: TrainedRun, options: ClassesOptions) -> Evaluation[SweepRow, SweepResults]:
    """−log p(x|M) as classes are added to the memory (Figure 5A).

    >>> trained = vma.evaluation.open_run(run)  # what vma.train returned
    >>> options = vma.evaluation.ClassesOptions(classes=(25, 50), samples=4)
    >>> [point.classes for point in vma.evaluation.classes_sweep(trained, options).results().points]
    [25, 50]
    """
    check_counts(options, classes=0, shots=0, targets=1, samples=1, seed=0)
    shots = options.shots or trained.episode.shots
    everything = len(trained.dataset.classes)
    numbers = sorted({c or everything for c in options.classes if c <= everything})
    if not numbers:
        raise InputError(
            f"The data has {everything} classes, fewer than any of {list(options.classes)}: ask for fewer."
        )
    memories = GrowingMemories(trained.dataset, options.targets, shots, options.seed)
    parts = [SweepPart(c, shots, block) for c in numbers for block in range(memories.blocks(c))]
    settings = {"classes": numbers, "shots": shots}
    return sweep("classes", trained, options, memories, parts, settings)


def shots_sweep(trained: TrainedRun, options: ShotsOptions) -> Evaluation[SweepRow, SweepResults]:
    """−log p(x|M) as examples of each class are added to the memory (Figure 4B).

    >>> trained = vma.evaluation.open_run(run)  # what vma.train returned
    >>> options = vma.evaluation.ShotsOptions(shots=(1, 2), classes=50, samples=4)
    >>> vma.evaluation.shots_sweep(trained, options).results()
    SweepResults(...)
    """
    check_counts(options, classes=0, targets=1, samples=1, seed=0)
    if not options.shots or min(options.shots) < 1:
        raise InputError(f"A memory needs 1 or more items of each class, not {list(options.shots)}.")
    shots = list(dict.fromkeys(options.shots))
    classes = options.classes or len(trained.dataset.classes)
    memories = GrowingMemories(trained.dataset, options.targets, max(shots), options.seed)
    parts = [SweepPart(classes, s, block) for s in shots for block in range(memories.blocks(classes))]
    return sweep("shots", trained, options, memories, parts, {"classes": classes, "shots": shots})


def sweep(
    name: str,
    trained: TrainedRun,
    options: ClassesOptions | ShotsOptions,
    memories: GrowingMemories,
    parts: Sequence[SweepPart],
    settings: dict[str, Any],
) -> Evaluation[SweepRow, SweepResults]:
    """An evaluation with a part for each block of each setting."""

    @torch.no_grad()
    def part(number: int) -> SweepRow:
        chosen = parts[number]
        block = memories.block(chosen.classes, chosen.block, chosen.shots)
        assert block.memory is not None
        like = torch.zeros((), device=trained.device)
        x, memory = block.targets.to(like), block.memory.to(like)
        keyed = trained.keyed(memory)
        found = measures(
            trained.model, x, keyed, options.samples, sampling=options.sampling,
            generator=trained.generator(options.seed, number),
        )  # fmt: skip
        own = {}
        if trained.addresses is not None:
            own = own_class(trained.addresses.posterior(x, keyed), memory, block.labels)
        targets = SweepMeasures(**asdict(found), **own)
        return SweepRow(**asdict(chosen), targets=targets, groups=block.labels.tolist())

    about = {**plain(trained.about), **asdict(options), **settings, "protocol": "disjoint", **BY_CLASS}
    return Evaluation(name, about, len(parts), part, SweepRow, summary)


def own_class(q_a: AddressDistribution, memory: Memory, labels: torch.Tensor) -> dict[str, list[float]]:
    """Σ_a q(a|x) [m_a is of the target's class], and whether no other class has more mass."""
    assert memory.labels is not None
    names, items = memory.labels.unique(return_inverse=True)
    mass = class_mass(q_a.log_probs.exp(), items)
    own = torch.searchsorted(names, labels.to(names.device))
    return {
        "own_class_mass": mass.gather(1, own.unsqueeze(1)).squeeze(1).double().tolist(),
        "own_class_first": (mass.argmax(1) == own).double().tolist(),
    }


def summary(rows: list[SweepRow]) -> SweepResults:
    """For each setting: means over targets, the rise over the first setting by target, and the log C line."""
    settings = list(dict.fromkeys(row.setting for row in rows))
    first, fewest = pool(rows, settings[0])[0].nll, settings[0].classes
    points = []
    for setting in settings:
        measured, groups = pool(rows, setting)
        rise = [late - early for late, early in zip(measured.nll, first, strict=True)]
        points.append(
            SweepPoint(
                **asdict(setting),
                memory=setting.classes * setting.shots,
                **averages(measured, groups),
                rise=mean_of(rise, groups),
                line=mean_of(first).value + math.log(setting.classes / fewest),
            )
        )
    return SweepResults(number_of_targets=len(first), points=points)


def pool(rows: list[SweepRow], setting: SweepSetting) -> tuple[SweepMeasures, list[tuple[int, int]]]:
    """Measures and groups of all targets at one setting, in the order of blocks, the same for every setting."""
    chosen = [row for row in rows if row.setting == setting]
    return pooled([row.targets for row in chosen]), groups_of([row.groups for row in chosen])
