"""Beyond the paper: all gradient estimators, at equal updates and at equal wall-clock."""

from collections.abc import Callable
from dataclasses import replace

from vma.errors import InputError
from vma.estimators import ESTIMATORS
from vma.evaluation.answers import Answer
from vma.evaluation.episodes import NllOptions
from vma.plotting.experiments.curves import estimators_figure
from vma.reproduce.experiment import Experiment, Needed, PlannedEvaluation, Scale
from vma.reproduce.findings import Answers, Finding, finding
from vma.reproduce.shared_evaluations import CurvePoint, CurveResults, planned_comparison, planned_curve
from vma.runs.settings import SleepSettings, TrainSettings
from vma.warps import WarpSettings

NOT_IN_PAPER = "not in the paper"
PAPERS = "the paper's"
VALIDATE_EVERY = 50


def with_estimator(name: str) -> Callable[[TrainSettings], TrainSettings]:
    """A small model at a constant rate, so that curves can be compared wherever they are cut.

    It does not sleep: asleep, q(a|x) would learn from dreams what each estimator should teach it.
    """

    def change(settings: TrainSettings) -> TrainSettings:
        return replace(
            settings,
            estimator=name,
            model=replace(settings.model, maps=16),
            optimiser=replace(settings.optimiser, schedule="constant"),
            sleep=SleepSettings(),
            warps=WarpSettings(),
            updates=10_000,
            log_every=25,
            validate_every=VALIDATE_EVERY,
        )

    return change


def plan(scale: Scale) -> dict[str, PlannedEvaluation]:
    """The curve of each estimator, and all models on the same test targets."""
    options = NllOptions(
        episodes=scale.count(16), classes=scale.choose(8, 2), targets=scale.choose(4, 2),
        shots=scale.choose(4, 1), samples=scale.samples(),
    )  # fmt: skip
    curves = {f"curve {name}": planned_curve(name) for name in ESTIMATORS}
    return {**curves, "test": planned_comparison(tuple(ESTIMATORS), options)}


def findings(answers: Answers) -> list[Finding]:
    """NLL on held-out classes at the slowest one's last update and minute; NLL on test classes at the end."""
    curves = {name: answers[f"curve {name}"] for name in ESTIMATORS}
    updates = min(validated(answer)[-1].update for answer in curves.values())
    seconds = min(validated(answer)[-1].seconds for answer in curves.values())
    found = []
    for name, answer in curves.items():
        paper = PAPERS if name == "vimco" else NOT_IN_PAPER
        points = validated(answer)
        early = last([point for point in points if point.update <= updates])
        timely = last([point for point in points if point.seconds <= seconds] or points[:1])
        found.append(finding(f"{name}: held-out NLL after {updates} updates", paper, early, answer))
        found.append(finding(f"{name}: held-out NLL after {seconds / 60:.1f} minutes", paper, timely, answer))
    test = answers["test"]
    for name, each in test.results.models.items():
        paper = PAPERS if name == "vimco" else NOT_IN_PAPER
        found.append(finding(f"{name}: test NLL at the end", paper, each.nll, test, run=name))
    return found


def validated(answer: Answer[CurveResults]) -> list[CurvePoint]:
    """The points of a curve that include a validation on held-out classes."""
    points = [point for point in answer.results.rows if point.valid_nll is not None]
    if not points:
        raise InputError(f"A run did not get to its first {VALIDATE_EVERY} updates: give a larger --budget.")
    return points


def last(points: list[CurvePoint]) -> float:
    """The NLL at the last point."""
    found = points[-1].valid_nll
    assert found is not None
    return found


EXPERIMENT = Experiment(
    name="estimators",
    title="Beyond the paper: gradient estimators compared",
    paper="The paper uses VIMCO, and has not investigated others.",
    caption="NLL on held-out training classes by the K-sample bound, the same for all, with averaged "
    "weights; one run each, same seed, 16 maps, constant rate after warm-up. Wall-clock is that "
    "of a machine that may have been shared.",
    needs={
        name: Needed("omniglot-fewshot-4", f"estimator-{name}", with_estimator(name)) for name in ESTIMATORS
    },
    plan=plan,
    findings=findings,
    draw=estimators_figure,
)
