"""The definition of an experiment: the runs that it needs, its evaluations, and its findings and figure."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from vma.evaluation.answers import PlainAnswers
from vma.evaluation.resumable import Evaluation
from vma.evaluation.trained_run import TrainedRun, open_run
from vma.plotting.style import Figure
from vma.ranges import Minutes, Number, check_ranges
from vma.reproduce.findings import Answers, Finding
from vma.runs.folder import Run
from vma.runs.settings import TrainSettings

Choice = TypeVar("Choice")

EVERYTHING = 240.0  # minutes of budget from which K and the number of targets are the paper's
LEAST_SHARE = 1 / 16
LADDER = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
TINY_SAMPLES = 2


@dataclass(frozen=True)
class Scale:
    """How much is done: as much as in the paper, as fits a budget, or next to nothing, for a test.

    Attributes:
        budget: Minutes; 0 for no limit.
        tiny: Invented glyphs, a few updates, a few samples: to see that everything works, never a result.
        fixed: K, whatever the budget; 0 to let the budget decide.
        updates: Updates of every run, including its sleep, instead of minutes; 0 to let the budget decide.
    """

    budget: Minutes = 0.0
    tiny: bool = False
    fixed: Number = 0
    updates: Number = 0

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def share(self) -> float:
        """Share of the paper's evaluation that fits the budget."""
        return max(LEAST_SHARE, min(1.0, self.budget / EVERYTHING)) if self.budget else 1.0

    def samples(self, paper: int = 1000) -> int:
        """K, if the paper has `paper`."""
        if self.tiny:
            return TINY_SAMPLES
        return self.fixed or max(k for k in LADDER if k <= paper * self.share)

    def count(self, most: int, tiny: int = 2) -> int:
        """Number of targets, episodes or trials, if `most` would be right with unlimited time.

        It grows with the root of the share, and K with the share itself: an error bar needs targets more than K.
        """
        return tiny if self.tiny else max(1, round(most * math.sqrt(self.share)))

    def choose(self, usual: Choice, tiny: Choice) -> Choice:
        """`usual`, or `tiny` at a tiny size."""
        return tiny if self.tiny else usual


def unchanged(settings: TrainSettings) -> TrainSettings:
    """The settings as they are."""
    return settings


@dataclass(frozen=True)
class Needed:
    """A run that an experiment needs.

    Attributes:
        preset: Its preset; under a budget of minutes or updates, the `-fast` variant if there is one.
        variant: What distinguishes it from the preset, for the name of its folder.
        change: The change to the preset's settings.
        least: Budgets of fewer minutes leave it out.
    """

    preset: str
    variant: str = ""
    change: Callable[[TrainSettings], TrainSettings] = unchanged
    least: float = 0.0


class OpenRuns:
    """The runs of an experiment, each opened once, when it is first needed.

    Args:
        runs: The runs, by their names in the experiment.
        data: Folder with the data files.
        device: The device of the models.
        command: The command that gives the same again.
    """

    def __init__(
        self,
        runs: Mapping[str, Run],
        data: Path | None = None,
        device: torch.device | str = "cpu",
        command: str = "",
    ) -> None:
        self.runs, self.data, self.device, self.command = dict(runs), data, device, command
        self.opened: dict[tuple[str, str], TrainedRun] = {}

    def trained(self, key: str, part: str = "test") -> TrainedRun:
        """The model of a run, with a part of its data."""
        if (key, part) not in self.opened:
            opened = open_run(self.runs[key], data=self.data, part=part, device=self.device)
            self.opened[key, part] = opened
        return self.opened[key, part]

    @property
    def formerly(self) -> dict[str, str]:
        """The names that older versions gave to the open models, by their identities."""
        return {name: old for each in self.opened.values() for name, old in each.formerly.items()}


@dataclass(frozen=True)
class PlannedEvaluation:
    """An evaluation that an experiment makes once its runs are there.

    Attributes:
        runs: The runs that it needs; if one of them is left out, so is the evaluation.
        prepare: A function from the opened runs to the evaluation.
    """

    runs: tuple[str, ...]
    prepare: Callable[[OpenRuns], Evaluation]


def planned(
    key: str, function: Callable[[TrainedRun, Any], Evaluation], options: Any, part: str = "test"
) -> PlannedEvaluation:
    """An evaluation of the run `key` on a part of its data, with these options."""
    return PlannedEvaluation((key,), lambda open_runs: function(open_runs.trained(key, part), options))


@dataclass(frozen=True)
class Experiment:
    """A figure, a table or a statement of the paper, to be made again.

    Attributes:
        name: What `vma reproduce` calls it.
        title: A line.
        paper: What the paper reports.
        caption: What its figure shows.
        needs: The runs it needs, by name.
        plan: The evaluations to make, by name.
        findings: A function from the answers to our numbers beside the paper's.
        draw: A function from the saved answers to the figure; it sees no model.
    """

    name: str
    title: str
    paper: str
    caption: str
    needs: Mapping[str, Needed]
    plan: Callable[[Scale], dict[str, PlannedEvaluation]]
    findings: Callable[[Answers], list[Finding]]
    draw: Callable[[PlainAnswers], Figure]
