"""`vma train`, `vma sleep` and `vma runs`."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from vma.errors import InputError
from vma.runs.belonging import complaints_of
from vma.runs.checkpoint import latest_progress
from vma.runs.folder import Run, all_runs, default_root
from vma.runs.metrics_file import Metrics, Row, read_metrics
from vma.runs.presets import FAST_SLEEP, FAST_WARPS
from vma.runs.settings import NEVER, SleepSettings, TrainSettings
from vma.warps import WarpSettings

USAGE = """usage: vma train PRESET [overrides]       start a run, e.g. vma train glyphs-fewshot-fast --minutes 5
       vma train --resume FOLDER [options]  go on where a run stopped
       vma train PRESET --help              everything that can be overridden

Several processes or machines: torchrun --nproc-per-node N -m vma train PRESET ...
'vma presets' lists the presets, 'vma runs' the runs."""


@dataclass(frozen=True)
class Start:
    """Start a run.

    Attributes:
        settings: The preset, with your overrides.
        folder: Folder of the run; the default is runs/PRESET-TIME (VMA_RUNS instead of `runs`, if set).
        data: Folder with the data files; the default is VMA_DATA, then the cache, then a download.
        device: auto, cpu, cuda or cuda:N.
    """

    settings: Annotated[TrainSettings, tyro.conf.arg(name="")] = field(default_factory=TrainSettings)
    folder: Path | None = None
    data: Path | None = None
    device: str = "auto"


@dataclass(frozen=True)
class Resume:
    """Go on where a run stopped: same settings, same losses as if it had not.

    Attributes:
        run: Folder of the run.
        updates: Another number of updates, to train longer.
        minutes: Another time budget, counted from the run's start.
        data: Folder with the data files.
        device: auto, cpu, cuda or cuda:N.
    """

    run: Annotated[Path, tyro.conf.Positional]
    updates: int | None = None
    minutes: float | None = None
    data: Path | None = None
    device: str = "auto"


def train_command(arguments: Sequence[str]) -> None:
    """`vma train`."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
    elif arguments[0] == "--resume":
        resume(tyro.cli(Resume, args=arguments[1:], prog="vma train --resume"))
    else:
        start(parse_start(arguments))


def parse_start(arguments: Sequence[str]) -> Start:
    """The preset that `arguments` begin with, and the overrides after it."""
    from vma.training.api import find_preset

    name, rest = arguments[0], arguments[1:]
    preset = find_preset(name)
    if given("--minutes", rest) and not given("--updates", rest):
        preset = replace(preset, updates=NEVER)  # the minutes end the run
    return tyro.cli(Start, default=Start(preset), args=rest, prog=f"vma train {name}")


def given(option: str, arguments: Sequence[str]) -> bool:
    """Whether an option is among the arguments, as `--name value` or `--name=value`."""
    return any(each == option or each.startswith(f"{option}=") for each in arguments)


def start(options: Start) -> None:
    """Start a run."""
    from vma.training.api import train

    train(options.settings, options.data, folder=options.folder, device=options.device)


def resume(options: Resume) -> None:
    """Go on with a run."""
    from vma.training.api import resume

    resume(options.run, options.data, updates=options.updates, minutes=options.minutes, device=options.device)


@dataclass(frozen=True)
class SleepOptions:
    """Give a run a sleep phase: q(a|x) learns from the model's own dreams, and nothing else is changed.

    The model in the folder stays what it is until the sleep is complete. A run that has slept sleeps anew, from
    where it was awake last. Interrupted, it goes on with 'vma train --resume'.

    Attributes:
        run: Folder of the run.
        updates: Updates asleep.
        minutes: Minutes asleep, instead of updates.
        sleep: How it sleeps; share, beside and begin have no meaning here.
        warps: What the matching networks see of an image meanwhile.
        data: Folder with the data files.
        device: auto, cpu, cuda or cuda:N.
        threads: Threads of torch; those of the run by default.
    """

    run: Annotated[Path, tyro.conf.Positional]
    updates: int = 3000
    minutes: float = 0.0
    sleep: SleepSettings = FAST_SLEEP
    warps: WarpSettings = FAST_WARPS
    data: Path | None = None
    device: str = "auto"
    threads: int | None = None


def sleep_command(arguments: Sequence[str]) -> None:
    """`vma sleep`."""
    give_sleep(tyro.cli(SleepOptions, args=arguments, prog="vma sleep"))


def give_sleep(options: SleepOptions) -> None:
    """Let a run sleep."""
    from vma.training.api import sleep

    sleep(
        options.run, options.data, updates=options.updates, minutes=options.minutes, settings=options.sleep,
        warps=options.warps, threads=options.threads, device=options.device,
    )  # fmt: skip


def runs_command(root: Path | None = None) -> None:
    """List the runs: how far each is and how well it does.

    Args:
        root: Folder of the runs; the default is VMA_RUNS, or `runs` here.
    """
    root = root or default_root()
    runs = all_runs(root)
    if not runs:
        raise InputError(
            f"There are no runs in {root}: start one with 'vma train glyphs-fewshot-fast --minutes 5'."
        )
    table = Table("run", "state", "update", "NLL", "held-out NLL", "KL_a", "KL_z", box=None, padding=(0, 1))
    wrong: list[str] = []
    for run in runs:
        row, complaints = run_row(run)
        table.add_row(run.folder.relative_to(root).as_posix(), *row)
        wrong += complaints
    console = Console()
    console.print(table, highlight=False)
    for complaint in wrong:
        console.print(complaint, highlight=False, markup=False, soft_wrap=True)


def run_row(run: Run) -> tuple[list[str], list[str]]:
    """One line of the table of runs without the name, and what is wrong with the run."""
    try:
        metrics, wrong = read_metrics(run.metrics_file), complaints_of(run)
    except InputError as error:
        metrics, wrong = Metrics([], []), [str(error), *complaints_of(run)]
    wrong += [complaint] if (complaint := metrics.complaint(run.metrics_file)) else []
    rows = metrics.rows
    last: Row = next((row for row in reversed(rows) if "nll" in row), {})
    valid = next((row["valid_nll"] for row in reversed(rows) if "valid_nll" in row), None)
    saved = "saved" if run.checkpoint_file.exists() else "empty"
    state = "running" if run.is_locked() else "damaged" if wrong else saved
    numbers = [last.get("nll"), valid, last.get("kl_a"), last.get("kl_z")]
    shown = ["" if value is None else f"{value:.2f}" for value in numbers]
    return [state, updates_of(run), *shown], list(dict.fromkeys(wrong))


def updates_of(run: Run) -> str:
    """How far a run is; `?` if that cannot be read."""
    try:
        return str(latest_progress(run).update) if run.checkpoint_file.exists() else "0"
    except InputError:
        return "?"
