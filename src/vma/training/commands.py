"""`vma train`, `vma presets` and `vma runs`."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from vma.errors import InputError, unknown_name
from vma.training.checkpoint import read_progress
from vma.training.presets import PRESETS
from vma.training.runs import Run, all_runs, default_root
from vma.training.settings import TrainSettings

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
    name = arguments[0]
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return tyro.cli(Start, default=Start(PRESETS[name]), args=arguments[1:], prog=f"vma train {name}")


def start(options: Start) -> bool:
    """Start a run; whether it came to its end."""
    from vma.training.loop import train

    run = Run(options.folder or fresh_folder(options.settings.preset))
    return train(options.settings, run, data=options.data, device=options.device)


def fresh_folder(preset: str) -> Path:
    """runs/PRESET-TIME; under torchrun only the first process's is used."""
    return default_root() / f"{preset}-{time.strftime('%Y%m%d-%H%M%S')}"


def resume(options: Resume) -> bool:
    """Go on with a run; whether it came to its end."""
    from vma.training.loop import train

    run = Run(options.run)
    settings = run.settings()
    longer = replace(
        settings,
        updates=settings.updates if options.updates is None else options.updates,
        minutes=settings.minutes if options.minutes is None else options.minutes,
    )
    return train(longer, run, data=options.data, device=options.device, resume=True)


def presets_command() -> None:
    """List the presets: what the paper does and reports."""
    table = Table(box=None, padding=(0, 1))
    table.add_column("preset", no_wrap=True)
    table.add_column("what it is")
    for name, settings in PRESETS.items():
        table.add_row(name, settings.description)
    Console().print(table, highlight=False)


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
    for run in runs:
        table.add_row(run.folder.relative_to(root).as_posix(), *run_row(run))
    Console().print(table, highlight=False)


def run_row(run: Run) -> list[str]:
    """One line of the table of runs, but for the name."""
    rows = run.metrics()
    last = rows[-1] if rows else {}
    valid = next((row["valid_nll"] for row in reversed(rows) if "valid_nll" in row), None)
    state = "running" if run.is_locked() else "saved" if run.checkpoint_file.exists() else "empty"
    numbers = [last.get("nll"), valid, last.get("kl_a"), last.get("kl_z")]
    shown = ["" if value is None else f"{value:.2f}" for value in numbers]
    update = read_progress(run.checkpoint_file).update if run.checkpoint_file.exists() else 0
    return [state, str(update), *shown]
