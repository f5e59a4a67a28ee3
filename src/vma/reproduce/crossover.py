"""The paper's last number: the |M| from which an update with addresses is faster than one with soft attention."""

import platform
from dataclasses import asdict, dataclass, replace

import torch

from vma.evaluation.answers import Answer
from vma.evaluation.resumable import Evaluation
from vma.plotting.experiments.curves import crossover_figure
from vma.reproduce.experiment import Experiment, PlannedEvaluation, Scale
from vma.reproduce.findings import Answers, Finding, finding
from vma.reproduce.update_times import HARD, Clock, crossing_of, update_seconds
from vma.runs.presets import PRESETS

SIZES = (8, 16, 32, 48, 64, 96, 128, 256, 512, 1024)
RIVALS = {"soft, features": "features at every scale", "soft, pixels": "pixels"}


@dataclass(frozen=True)
class TimingOptions:
    """Time of one update for each |M|.

    Attributes:
        sizes: |M|.
        targets: Targets of an update.
        maps: Feature maps.
        repeats: Rounds, in each of which every model makes one update.
    """

    sizes: tuple[int, ...] = SIZES
    targets: int = 32
    maps: int = 64
    repeats: int = 5


@dataclass(frozen=True)
class TimingPoint:
    """One |M|.

    Attributes:
        memory: |M|.
        seconds: Seconds of one update, by model.
        flops: Operations of one update, by model; like the following, only in answers of earlier versions.
        reads: All reads of VMA's update.
        unique_pairs: Different pairs of target and item among these reads.
        unique_items: Different items among these reads.
    """

    memory: int
    seconds: dict[str, float]
    flops: dict[str, int] | None = None
    reads: int | None = None
    unique_pairs: int | None = None
    unique_items: int | None = None


@dataclass(frozen=True)
class TimingResults:
    """All sizes, and the |M| from which VMA is faster than each rival; None if it is not at the largest |M|."""

    points: list[TimingPoint]
    crossing: dict[str, float | None]


def timing(options: TimingOptions) -> Evaluation[TimingPoint, TimingResults]:
    """The evaluation that `options` ask for, one part per |M|; with one thread, CPU time is measured."""
    preset, threads = PRESETS["omniglot-fewshot-4"], torch.get_num_threads()
    settings = replace(preset, model=replace(preset.model, maps=options.maps))
    clock: Clock = "cpu" if threads == 1 else "wall"

    def part(number: int) -> TimingPoint:
        items = options.sizes[number]
        return TimingPoint(items, update_seconds(settings, items, options.targets, options.repeats, clock))

    here = {"threads": threads, "clock": clock, "machine": platform.machine(), "torch": torch.__version__}
    return Evaluation("timing", {**asdict(options), **here}, len(options.sizes), part, TimingPoint, summary)


def summary(points: list[TimingPoint]) -> TimingResults:
    """The times at every |M|, and the |M| from which VMA is faster."""
    seconds = {point.memory: point.seconds for point in points}
    return TimingResults(points, {name: crossing_of(seconds, name) for name in RIVALS})


def plan(scale: Scale) -> dict[str, PlannedEvaluation]:
    """The paper's sizes, with fewer maps under a budget."""
    usual = TimingOptions(maps=32 if scale.budget else 64)
    options = scale.choose(usual, TimingOptions(sizes=(4, 8), targets=2, maps=8, repeats=1))
    return {"timing": PlannedEvaluation((), lambda open_runs: timing(options))}


def findings(answers: Answers) -> list[Finding]:
    """The |M| from which VMA is faster, and by how much at the largest |M|."""
    answer = answers["timing"]
    last = answer.results.points[-1]
    found = []
    for key, name in RIVALS.items():
        what = f"VMA (K = 4) faster than soft attention over {name} (K = 1), from |M| ="
        found.append(finding(what, "48", in_words(answer, key), answer))
    for key, name in RIVALS.items():
        ratio = last.seconds[key] / last.seconds[HARD]
        what = f"time of soft attention over {name} / time of VMA, |M| = {last.memory}"
        found.append(finding(what, "above 1", ratio, answer, unit=""))
    return found


def in_words(answer: Answer[TimingResults], rival: str) -> str:
    """The crossing in words, or that there is none."""
    found, sizes = answer.results.crossing[rival], answer.about["sizes"]
    if found is None:
        return f"not up to {sizes[-1]}"
    return f"{sizes[0]}, the smallest that was timed" if found <= sizes[0] else f"{found:.0f}"


CROSSOVER = Experiment(
    name="text-crossover",
    title="Text: when addresses are faster than soft attention",
    paper="From |M| ≥ 48 on, an update with hard addressing and K = 4 is noticeably faster than one of "
    "the soft-attention baseline with K = 1.",
    caption="Time of one update, median of several taken by turns. VMA's q(a|x) is made as sharp as a "
    "trained model's, so that reads of an update repeat items as they do in training. The paper does not say "
    "whether its baseline averages pixels or features: both are timed.",
    needs={},
    plan=plan,
    findings=findings,
    draw=crossover_figure,
)
