"""The training loop: episode, bound, gradient, step; checkpoints so that nothing is lost."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

import torch
from torch import nn

from vma.errors import InputError
from vma.estimators import Estimate
from vma.files import write_atomically
from vma.models import build_model
from vma.storage import save_model
from vma.training.allocation import keep_memory
from vma.training.checkpoint import Progress, describe, load_checkpoint, save_checkpoint
from vma.training.metrics import Window
from vma.training.optimiser import Average, build_optimisers, rate_factor, set_rates
from vma.training.processes import Processes, processes
from vma.training.runs import Run
from vma.training.settings import TrainSettings
from vma.training.streams import Streams, for_model, generator, open_streams
from vma.training.view import SilentView, View, make_view

VALIDATION_EPISODES = 8


def train(
    settings: TrainSettings,
    run: Run,
    *,
    data: Path | None = None,
    device: str = "auto",
    resume: bool = False,
    quiet: bool = False,
) -> bool:
    """Train as `settings` say, into the folder of `run`; with `resume`, go on from its checkpoint.

    Returns whether the run came to its end; False if it was interrupted, and saved.

    Args:
        settings: The run's settings.
        run: Where it is kept.
        data: Folder with the data files; else VMA_DATA, the cache, a download.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        resume: Go on from the checkpoint in the folder.
        quiet: Show nothing.
    """
    if settings.threads:
        torch.set_num_threads(settings.threads)
    keep_memory()
    with processes(device) as here:
        check_precision(settings, here)
        streams = open_streams(settings, data, here.rank, here.world)
        height, width = streams.size
        settings = replace(settings, model=replace(settings.model, height=height, width=width))
        if not here.is_first:
            return Trainer(settings, run, streams, here, SilentView()).fit(resume)
        with run.lock():
            run.keep_settings(settings) if resume else run.create(settings)
            with make_view(settings, run, quiet) as view:
                return Trainer(settings, run, streams, here, view).fit(resume)


class Trainer:
    """One process of a run."""

    def __init__(
        self, settings: TrainSettings, run: Run, streams: Streams, here: Processes, view: View
    ) -> None:
        self.settings, self.run, self.streams, self.here, self.view = settings, run, streams, here, view
        torch.manual_seed(settings.seed)
        self.model = build_model(settings.model).to(here.device)
        self.optimisers = build_optimisers(self.model, settings.optimiser)
        self.average = Average(self.model, settings.optimiser.average)
        self.length = settings.episode.targets if settings.episode.kind == "sequence" else 0
        self.window = Window()
        self.update, self.seconds = 0, 0.0
        self.factor, self.pace = 1.0, Pace()

    def fit(self, resume: bool) -> bool:
        """Update until updates or minutes are used up, or somebody interrupts; whether it came to its end."""
        if resume:
            self.restore()
        shared = self.here.share(self.model)
        started = time.monotonic() - self.seconds
        checkpoint, picture = Due(self.settings.checkpoint_minutes), Due(self.settings.picture_minutes)
        with interruptions() as interrupted:
            while not self.finished() and not self.here.any(bool(interrupted)):
                self.step(shared)
                self.seconds = self.here.largest(time.monotonic() - started)
                self.report()
                if checkpoint.now(self.update % self.settings.checkpoint_every == 0):
                    self.save()
                if picture.now():
                    self.draw()
            self.save()
            ended = self.finished()
            self.view.ended(self.update, interrupted=not ended)
        self.draw()
        return ended

    def restore(self) -> None:
        """Take up where the checkpoint left off, or start anew where none had been written."""
        if self.run.checkpoint_file.exists():
            progress = load_checkpoint(
                self.run.checkpoint_file, self.models(), self.optimisers, self.window.sums
            )
            self.update, self.seconds = progress.update, progress.seconds
            self.pace = Pace(self.update, self.seconds)
        if self.here.largest(float(self.update)) != self.update:
            raise InputError(
                f"Process {self.here.rank} does not see the checkpoint {self.run.checkpoint_file} that another one "
                "resumes from: put the run on a folder that all machines share."
            )
        if self.here.is_first:
            self.run.keep_metrics_until(self.update)

    def models(self) -> dict[str, nn.Module]:
        """What a checkpoint holds: the model, and its average if there is one."""
        averaged = {"average": self.average.model} if self.average.decay else {}
        return {"model": self.model, **averaged}

    def finished(self) -> bool:
        """Whether the updates or the minutes are used up, on any process."""
        late = bool(self.settings.minutes) and self.seconds >= 60 * self.settings.minutes
        return self.here.any(late or self.update >= self.settings.updates)

    def progress(self) -> float:
        """Share of the run that is done, by updates or by time, whichever is further."""
        by_time = self.seconds / (60 * self.settings.minutes) if self.settings.minutes else 0.0
        return max(self.update / self.settings.updates, by_time)

    def step(self, shared: nn.Module) -> None:
        """One update: the mean gradient of its episodes."""
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=True)
        estimates = [self.backward(shared, number) for number in self.episodes()]
        limit = self.settings.optimiser.clip or float("inf")
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), limit)
        self.check(estimates[-1], norm)
        self.factor = rate_factor(self.settings.optimiser, self.update, self.progress())
        set_rates(self.optimisers, self.factor)
        for optimiser in self.optimisers:
            optimiser.step()
        self.update += 1
        self.average.update(self.model, self.update)
        self.window.add(estimates, norm)

    def episodes(self) -> range:
        """The numbers of this update's episodes."""
        count = self.settings.episode.episodes
        return range(self.update * count, (self.update + 1) * count)

    def backward(self, shared: nn.Module, number: int) -> Estimate:
        """Add one episode's share to the gradients; the network's activations are freed."""
        estimate = self.estimate(shared, number)
        self.check(estimate, estimate.surrogate)
        (estimate.loss / self.settings.episode.episodes).backward()
        return estimate

    def estimate(self, shared: nn.Module, number: int) -> Estimate:
        """The bound at episode `number`."""
        settings, here = self.settings, self.here
        x, memory = for_model(self.streams.train.episode(number), here.device, self.length)
        mixed = settings.precision == "bfloat16"
        with torch.autocast(here.device.type, dtype=torch.bfloat16, enabled=mixed):
            return shared(
                x,
                memory,
                settings.samples,
                estimator_name=settings.estimator,
                latent_gradient=settings.latent_gradient,
                generator=generator(settings.seed, number, here.rank, here.device),
            )

    def check(self, estimate: Estimate, value: torch.Tensor) -> None:
        """Stop at a loss or a gradient that is not finite, before it reaches the weights."""
        if bool(torch.isfinite(value)):
            return
        names = ("log_p_a", "log_q_a", "log_p_z", "log_q_z", "log_p_x")
        means = {name: float(getattr(estimate.terms, name).detach().mean()) for name in names}
        shown = ", ".join(f"{name} {value:.4g}" for name, value in means.items())
        raise InputError(
            f"The loss or its gradient is not finite at update {self.update} (means: {shown}); "
            f"{describe(self.run.checkpoint_file)}. Lower the rate, or set optimiser.clip."
        )

    def report(self) -> None:
        """Write a line of metrics when one is due, with a validation when that is due too."""
        settings = self.settings
        due = self.update % settings.log_every == 0 or self.update % settings.validate_every == 0
        if not due or not self.here.is_first:
            return
        row = {**self.window.row(self.update), "seconds": round(self.seconds, 3)}
        row["rate_factor"] = self.factor
        row["updates_per_second"] = self.pace.see(self.update, self.seconds)
        if self.update % settings.validate_every == 0:
            row["valid_nll"] = self.validate()
        self.run.append_metrics(row)
        self.view.show(row)

    @torch.no_grad()
    def validate(self) -> float:
        """Mean NLL on fixed episodes of held-out training classes, with the averaged weights."""
        total = 0.0
        for number in range(VALIDATION_EPISODES):
            x, memory = for_model(self.streams.valid.episode(number), self.here.device, self.length)
            source = generator(self.settings.seed, number, 1 << 30, self.here.device)
            total -= float(
                self.average.model.bound(x, memory, self.settings.samples, generator=source).mean()
            )
        return total / VALIDATION_EPISODES

    def save(self) -> None:
        """Write checkpoint and model."""
        if not self.here.is_first:
            return
        progress = Progress(self.update, self.seconds)
        save_checkpoint(self.run.checkpoint_file, progress, self.models(), self.optimisers, self.window.sums)
        save_model(self.average.model, self.run.model_file)

    def draw(self) -> None:
        """Write pictures: learning curves, and samples beside the memory they were drawn from."""
        if not self.here.is_first or not self.settings.picture_minutes:
            return
        from vma.report.pictures import learning_curves  # here, as matplotlib takes a second to import
        from vma.training.pictures import samples

        episode = self.streams.valid.episode(0)
        drawn = samples(self.average.model, episode, self.here.device)
        write_atomically(self.run.folder / "samples.png", drawn)
        if rows := self.run.metrics():
            write_atomically(self.run.folder / "curves.png", learning_curves(rows))


class Pace:
    """Updates per second since the last look."""

    def __init__(self, update: int = 0, seconds: float = 0.0) -> None:
        self.last = (update, seconds)

    def see(self, update: int, seconds: float) -> float:
        """The rate since the last call, or since the start."""
        updates, passed = update - self.last[0], seconds - self.last[1]
        self.last = (update, seconds)
        return round(updates / passed, 3) if passed > 0 else 0.0


class Due:
    """Whether so many minutes have passed since the last time that something was done; never for 0."""

    def __init__(self, minutes: float) -> None:
        self.seconds, self.last = 60 * minutes, time.monotonic()

    def now(self, anyway: bool = False) -> bool:
        """Whether it is due, by time or `anyway`; if so, the clock starts again."""
        due = anyway or (self.seconds > 0 and time.monotonic() - self.last > self.seconds)
        if due:
            self.last = time.monotonic()
        return due


def check_precision(settings: TrainSettings, here: Processes) -> None:
    """Mixed precision only where the device has it."""
    if settings.precision == "bfloat16" and here.device.type == "cpu":
        raise InputError(
            "precision='bfloat16' needs a GPU: on a CPU it is several times slower than float32."
        )


@contextmanager
def interruptions() -> Iterator[list[int]]:
    """A list that is filled by Ctrl-C or a termination signal; a second one ends the process as usual."""
    caught: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        restore()

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    try:
        for number in before:
            signal.signal(number, remember)
        yield caught
    finally:
        restore()
