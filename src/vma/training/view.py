"""Seeing a run: a live view in a terminal, plain lines in a pipe, TensorBoard in both."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol, runtime_checkable

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from vma.errors import InputError, missing_extra
from vma.runs.checkpoint import share_of_time
from vma.runs.folder import Run
from vma.runs.settings import TrainSettings
from vma.training.metrics import AWAKE

SHOWN = {
    "nll": ("NLL (nats)", "negative K-sample bound: lower is better"),
    "reconstruction": ("reconstruction", "E log p(x|m,z)"),
    "kl_a": ("KL_a", "nats that reading the memory was worth"),
    "kl_z": ("KL_z", "nats that z had to add"),
    "entropy_q_a": ("H(q(a|x))", "0 when it knows where to look"),
    "entropy_p_a": ("H(p(a))", "log |M| when flat"),
    "effective_samples": ("effective samples", "of the K drawn"),
    "gradient_norm": ("gradient norm", "watch for jumps"),
    "dream_log_q_a": ("log q(a|x) of dreams", "asleep: 0 when it knows from which item it dreamt"),
    "dream_found": ("addresses found", "share of dreams; 1/|M| is chance"),
    "dream_class_found": ("classes found", "share of dreams"),
    "valid_nll": ("NLL, held-out classes", "of the training part"),
    "valid_class_found": ("classes found, held out", "share of targets, by q(a|x)"),
}
LINE = {
    "nll": "nll", "valid_nll": "valid", "kl_a": "kl_a", "kl_z": "kl_z", "dream_log_q_a": "log q(a|dream)",
    "dream_found": "address found", "dream_class_found": "class found",
}  # fmt: skip


@runtime_checkable
class View(Protocol):
    """Something that shows a run's progress."""

    def show(self, row: dict[str, Any]) -> None:
        """Show a line of metrics."""

    def ended(self, update: int, interrupted: bool) -> None:
        """Say how the run ended."""


def seconds_left(settings: TrainSettings, row: dict[str, Any]) -> float:
    """Seconds left, by updates or by the time budget, whichever ends first."""
    rate = row["updates_per_second"]
    by_updates = (settings.updates - row["update"]) / rate if rate else float("inf")
    by_time = 60 * settings.minutes - row["seconds"] if settings.minutes else float("inf")
    if rate and row["update"] < settings.least_updates:
        by_time = max(by_time, (settings.least_updates - row["update"]) / rate)
    return max(0.0, min(by_updates, by_time))


def share_done(settings: TrainSettings, row: dict[str, Any]) -> float:
    """Share of the run that is done."""
    by_time = share_of_time(row["update"], row["seconds"], settings)
    return min(1.0, max(row["update"] / settings.updates, by_time))


def clock(seconds: float) -> str:
    """1:02:03."""
    if seconds == float("inf"):
        return "?"
    whole = int(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


class SilentView:
    """Shows nothing."""

    def show(self, row: dict[str, Any]) -> None:
        """Nothing."""

    def ended(self, update: int, interrupted: bool) -> None:
        """Nothing."""


class PlainView:
    """One line of text for each line of metrics."""

    def __init__(self, settings: TrainSettings, run: Run) -> None:
        self.settings, self.run = settings, run
        print(f"{settings.preset or 'run'} -> {run.folder}", flush=True)

    def show(self, row: dict[str, Any]) -> None:
        """Print a line."""
        rate, left = row["updates_per_second"], clock(seconds_left(self.settings, row))
        figures = [f"{label} {row[key]:.2f}" for key, label in LINE.items() if key in row]
        asleep = [] if "nll" in row else ["asleep"]
        parts = [f"update {row['update']}", *asleep, *figures, f"{rate:.1f} updates/s", f"left {left}"]
        print("  ".join(parts), flush=True)

    def ended(self, update: int, interrupted: bool) -> None:
        """Print the last line."""
        print(ending(self.run, update, interrupted), flush=True)


class LiveView:
    """A table of the latest metrics under a bar, redrawn in place."""

    def __init__(self, settings: TrainSettings, run: Run, live: Live) -> None:
        self.settings, self.run, self.live = settings, run, live
        self.latest: dict[str, Any] = {}
        columns = (TextColumn("{task.description}"), BarColumn(None), TextColumn("{task.fields[text]}"))
        self.bar = Progress(*columns, TimeElapsedColumn(), console=live.console)
        self.task = self.bar.add_task(settings.preset or "training", total=1.0, text="")
        self.live.update(self.bar)

    def show(self, row: dict[str, Any]) -> None:
        """Redraw."""
        asleep = "nll" not in row
        self.latest = {k: v for k, v in self.latest.items() if not (asleep and k in AWAKE)} | row
        rate, left = row["updates_per_second"], clock(seconds_left(self.settings, row))
        text = f"{'asleep  ' if asleep else ''}update {row['update']}  {rate:.1f}/s  left {left}"
        self.bar.update(self.task, completed=share_done(self.settings, row), text=text)
        self.live.update(Group(self.bar, self.table()))

    def table(self) -> Table:
        """The latest value of every metric and what it means."""
        table = Table(box=None, padding=(0, 2), show_header=False)
        for key, (label, meaning) in SHOWN.items():
            if key in self.latest:
                table.add_row(label, f"{self.latest[key]:.2f}", f"[dim]{meaning}[/dim]")
        return table

    def ended(self, update: int, interrupted: bool) -> None:
        """Print the last line under the table."""
        self.live.console.print(ending(self.run, update, interrupted), highlight=False)


def ending(run: Run, update: int, interrupted: bool) -> str:
    """How a run ended, and how to go on."""
    if interrupted:
        return f"Stopped at update {update}, saved. Go on with: vma train --resume {run.folder}"
    return f"Done: {update} updates. The model is {run.model_file}"


class WithTensorBoard:
    """Passes everything on, and writes it for TensorBoard too."""

    def __init__(self, inner: View, run: Run) -> None:
        from tensorboard.summary import Writer

        self.inner, self.writer = inner, Writer(str(run.folder / "tensorboard"))

    def show(self, row: dict[str, Any]) -> None:
        """Write scalars."""
        try:
            for key, value in row.items():
                if key != "update":
                    self.writer.add_scalar(key, value, row["update"])
            self.writer.flush()
        except OSError as error:
            raise InputError(f"Cannot write for TensorBoard: {error.strerror}.") from None
        self.inner.show(row)

    def ended(self, update: int, interrupted: bool) -> None:
        """Close the file."""
        self.writer.close()
        self.inner.ended(update, interrupted)


@contextmanager
def make_view(settings: TrainSettings, run: Run, quiet: bool) -> Iterator[View]:
    """Live in a terminal, plain lines elsewhere, nothing if `quiet`."""
    if quiet:
        yield SilentView()
    elif sys.stdout.isatty():
        with Live(console=Console(), refresh_per_second=4) as live:
            yield with_tensorboard(LiveView(settings, run, live), run)
    else:
        yield with_tensorboard(PlainView(settings, run), run)


def with_tensorboard(view: View, run: Run) -> View:
    """The view, and TensorBoard beside it; where that is not installed, a sentence says so."""
    try:
        return WithTensorBoard(view, run)
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        say_once(f"No file for TensorBoard is written. {missing}")
        return view


@cache
def say_once(sentence: str) -> None:
    """Print a sentence, the first time that it is to be said."""
    print(sentence, flush=True)
