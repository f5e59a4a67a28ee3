"""The campaign: every run behind the reproduction of the paper, as a queue that any number of processes share.

    python -m benchmarks.campaign runs --data DATA            # in as many terminals as there are cores
    python -m benchmarks.campaign runs --only vae soft        # these runs alone, in this order
    python -m benchmarks.campaign runs --table                # what is planned, and how far it is

Each process takes the first run that is not complete and that nobody is training, resumes it where it was cut, and
goes on to the next. Every run has one thread.
"""

import shlex
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from vma.runs.belonging import is_trained
from vma.runs.checkpoint import latest_progress
from vma.runs.folder import Run


@dataclass(frozen=True)
class Planned:
    """A run of the campaign.

    Attributes:
        name: Name of its folder.
        arguments: What `vma train` is given, but for the folder: preset and overrides.
        hours: Core-hours that it was expected to take.
        purpose: What it is for.
    """

    name: str
    arguments: str
    hours: float
    purpose: str


def seeds(name: str, arguments: str, hours: float, purpose: str) -> list[Planned]:
    """The same run with three seeds."""
    return [Planned(f"{name}-s{seed}", f"{arguments} --seed {seed}", hours, purpose) for seed in range(3)]


EPISODES_AS_VMA = "--episode.classes 8 --episode.shots 4 --episode.targets 4 --episode.episodes 1"
SHORT = "--updates 3000 --sleep.share 0"
PLAN = [
    Planned("recall-256", "mnist-recall-fast", 0.15, "Figure 2A; 2048 test digits"),
    *seeds("learned-256", "mnist-learned-256-fast", 0.15, "Figure 2B"),
    *seeds("mnist-vae", "mnist-vae-fast", 0.07, "Figure 2B's baseline"),
    *(
        Planned(f"learned-{size}", f"mnist-learned-{size}-fast", 0.2, "Figure 2B, sizes of M")
        for size in (64, 1024, 512, 128)
    ),
    *seeds("recall-512", "mnist-recall-512-fast", 0.2, "how often the optimum is found"),
    *seeds("recall-1024", "mnist-recall-1024-fast", 0.3, "how often the optimum is found"),
    Planned(
        "recall-256-first", "mnist-recall-fast --model.item-layers first", 0.15, "m in the first layer alone"
    ),
    Planned("fewshot-4", "omniglot-fewshot-4-fast", 0.7, "Figures 3, 4, 5, classification"),
    Planned("vae", "omniglot-vae-fast", 0.3, "Figure 5A's and 5B's baseline"),
    Planned("soft", f"omniglot-soft-fast {EPISODES_AS_VMA}", 0.5, "Figure 5A's baseline, episodes as VMA's"),
    Planned("soft-2x16", "omniglot-soft-fast", 0.8, "Figure 5A's baseline, episodes as in the paper"),
    *(
        Planned(f"fewshot-{shots}", f"omniglot-fewshot-{shots}-fast", 0.7, "Figures 4B, 5B, supplement")
        for shots in (1, 16, 8)
    ),
    Planned("omniglot28-vae", "omniglot28-vae-fast --data.name omniglot28-stand-in", 0.3, "Omniglot 28×28"),
    Planned(
        "omniglot28-256", "omniglot28-learned-256-fast --data.name omniglot28-stand-in", 1.0, "Omniglot 28×28"
    ),
    Planned("gmn-vma", "gmn-vma-fast --updates 4000", 0.35, "Table 1"),
    Planned("gmn-gmn", "gmn-gmn-fast --updates 4000", 0.5, "Table 1"),
    Planned("gmn-published", "gmn-published --updates 30000", 1.4, "Table 1, GMN as its public code has it"),
    *seeds("control", f"omniglot-fewshot-4-fast {SHORT}", 0.15, "controls: the reference"),
    *seeds("flat-prior", f"omniglot-fewshot-4-fast {SHORT} --model.prior flat", 0.15, "controls"),
    *seeds(
        "inner-product", f"omniglot-fewshot-4-fast {SHORT} --model.similarity inner-product", 0.15, "controls"
    ),
    *seeds("cosine", f"omniglot-fewshot-4-fast {SHORT} --model.similarity cosine", 0.15, "controls"),
    *seeds(
        "32-classes",
        f"omniglot-fewshot-4-fast {SHORT} --episode.classes 32 --episode.targets 1",
        0.2,
        "controls",
    ),
    Planned(
        "in-order-long",
        "omniglot-fewshot-4-in-order --model.context-maps 32 --updates 60000",
        6.0,
        "the best",
    ),
    Planned("bernoulli-long", "omniglot-fewshot-4-fast --updates 60000", 5.0, "the best"),
]


@dataclass(frozen=True)
class Options:
    """The queue.

    Attributes:
        runs: Folder of the campaign's runs.
        data: Folder with the data files.
        only: Names of the runs to train, in this order; all of the plan where none is given.
        table: Show the plan instead of training.
    """

    runs: Annotated[Path, tyro.conf.Positional]
    data: Path | None = None
    only: tuple[str, ...] = ()
    table: bool = False


def table(runs: Path) -> str:
    """The plan as a Markdown table, with how far each run is."""
    lines = ["| run | `vma train ...` | core-hours planned | for | done |", "|---|---|---|---|---|"]
    for each in PLAN:
        lines.append(
            f"| {each.name} | `{each.arguments}` | {each.hours:.2f} | {each.purpose} | "
            f"{state(Run(runs / each.name))} |"
        )
    return "\n".join(lines)


def state(run: Run) -> str:
    """How far a run is."""
    if not run.checkpoint_file.exists():
        return "no"
    progress = latest_progress(run)
    return f"{progress.update} updates, {progress.seconds / 3600:.2f} h" + (
        "" if is_trained(run) else " so far"
    )


def train(each: Planned, options: Options) -> bool:
    """Start a run or go on with it, in a process of its own; whether that ended well."""
    folder = options.runs / each.name
    what = ["--resume", str(folder)] if Run(folder).settings_file.exists() else shlex.split(each.arguments)
    place = [] if what[0] == "--resume" else ["--folder", str(folder), "--threads", "1"]
    data = ["--data", str(options.data)] if options.data else []
    print(f"{each.name}: {' '.join(what)}", flush=True)
    command = [sys.executable, "-m", "vma", "train", *what, *place, *data]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            return process.wait() == 0
        except KeyboardInterrupt:  # the run was told too, and saves
            process.wait()
            raise


def main(options: Options) -> None:
    """Train what is not complete, or show the plan."""
    if options.table:
        print(table(options.runs))
        return
    failures: Counter[str] = Counter()  # one may be because another process was faster; two are enough
    plan = chosen(options.only)
    while each := next_run(plan, options.runs, failures):
        if not train(each, options):
            failures[each.name] += 1


def chosen(names: tuple[str, ...]) -> list[Planned]:
    """The planned runs of these names, in their order, or all of them."""
    plan = {each.name: each for each in PLAN}
    if unknown := [name for name in names if name not in plan]:
        raise SystemExit(f"No run of the plan is called {', '.join(unknown)}; --table shows their names.")
    return [plan[name] for name in names] or PLAN


def next_run(plan: list[Planned], runs: Path, failures: Counter[str]) -> Planned | None:
    """The first run that is to be trained and that has not failed twice."""
    return next((each for each in plan if failures[each.name] < 2 and is_free(Run(runs / each.name))), None)


def is_free(run: Run) -> bool:
    """Whether a run is to be trained, and nobody is at it."""
    return not is_trained(run) and not run.is_locked()


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
