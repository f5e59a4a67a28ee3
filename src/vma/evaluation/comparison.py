"""`comparison`: −log p(x|M) of the same targets under several models, paired by target."""

from collections.abc import Mapping
from dataclasses import dataclass

from vma.evaluation.episodes import NllOptions, nll
from vma.evaluation.likelihood import (
    AverageMeasures,
    TargetMeasures,
    averages,
    groups_of,
    pooled,
)
from vma.evaluation.resumable import Evaluation, TargetResults
from vma.evaluation.statistics import Mean, mean_of
from vma.evaluation.trained_run import TrainedRun


@dataclass(frozen=True)
class ComparisonRow:
    """One episode: the measures of its targets under each model, and the class of each target."""

    models: dict[str, TargetMeasures]
    groups: list[int]


@dataclass(frozen=True, kw_only=True)
class ComparedModel(AverageMeasures):
    """One model: means over all targets, and how far its NLL is above the first model's, target by target."""

    above_first: Mean


@dataclass(frozen=True, kw_only=True)
class ComparisonResults(TargetResults):
    """Every model, by name; the others are compared with the first."""

    models: dict[str, ComparedModel]


def comparison(
    models: Mapping[str, TrainedRun], options: NllOptions
) -> Evaluation[ComparisonRow, ComparisonResults]:
    """`nll` of every model on the episodes of the first, and the differences from it.

    >>> trained = vma.evaluation.open_run(run)  # what vma.train returned
    >>> options = vma.evaluation.NllOptions(episodes=2, samples=4)
    >>> vma.evaluation.comparison({"one": trained, "again": trained}, options).results()
    ComparisonResults(...)
    """
    each = {name: nll(trained, options) for name, trained in models.items()}
    first = next(iter(each.values()))
    about = {name: value for name, value in first.about.items() if name != "model"}
    about["models"] = {name: evaluation.about["model"] for name, evaluation in each.items()}

    def part(number: int) -> ComparisonRow:
        rows = {name: evaluation.part(number) for name, evaluation in each.items()}
        groups = next(iter(rows.values())).groups
        return ComparisonRow({name: row.targets for name, row in rows.items()}, groups)

    return Evaluation("comparison", about, first.parts, part, ComparisonRow, summary)


def summary(rows: list[ComparisonRow]) -> ComparisonResults:
    """Means for each model, and how far its NLL is above the first model's, target by target."""
    groups = groups_of([row.groups for row in rows])
    measured = {name: pooled([row.models[name] for row in rows]) for name in rows[0].models}
    first = next(iter(measured.values())).nll
    models = {}
    for name, own in measured.items():
        above = [ours - theirs for ours, theirs in zip(own.nll, first, strict=True)]
        models[name] = ComparedModel(**averages(own, groups), above_first=mean_of(above, groups))
    return ComparisonResults(number_of_targets=len(first), models=models)
