"""The training loop: episode, bound, gradient, step; checkpoints so that nothing is lost."""

import importlib
import signal
import time
from dataclasses import replace
from pathlib import Path

import torch

from vma.addressing import class_mass
from vma.build import build_model
from vma.data.dataset import Dataset
from vma.data.episodes import Episode
from vma.errors import InputError, missing_extra
from vma.files import write_atomically
from vma.generative_model import GenerativeModel
from vma.memory import Memory
from vma.model import addressed
from vma.runs.belonging import file_to_resume
from vma.runs.checkpoint import (
    Progress,
    describe,
    header_of,
    is_at_its_end,
    load_checkpoint,
    save_checkpoint,
    share_of_time,
)
from vma.runs.folder import Run
from vma.runs.processes import Processes, keep_memory, processes
from vma.runs.settings import TrainSettings
from vma.storage import identity, save_model
from vma.training.ending import Ending, interruptions
from vma.training.episodes import RunEpisodes, for_model, generator, open_episodes
from vma.training.first_model import check_fits, first_model, like
from vma.training.output import output_without_reader
from vma.training.phases import Asleep, Awake, NotFinite, Phase
from vma.training.view import SilentView, View, make_view, say_once

VALIDATION_EPISODES = 8
ROUNDING = 1e-9  # of a share of the run that is done


def train_run(
    settings: TrainSettings,
    run: Run,
    *,
    data: Dataset | Path | None = None,
    device: str = "auto",
    resume: bool = False,
    sleep_anew: bool = False,
    quiet: bool = False,
) -> Ending:
    """Train as `settings` say, into the folder of `run`; with `resume`, go on from its checkpoint.

    Returns how it ended: true if the run came to its end, false if it was interrupted and saved.

    Args:
        settings: The run's settings.
        run: Where it is kept.
        data: The images, or the folder with the data files; by default VMA_DATA, the cache, or a download.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        resume: Go on from the checkpoint in the folder.
        sleep_anew: Go on from where it was last awake, even if it has slept since.
        quiet: Show nothing.
    """
    if settings.threads:
        torch.set_num_threads(settings.threads)
    keep_memory()
    with processes(device) as here:
        check_precision(settings, here)
        content = ""
        if isinstance(data, Dataset):  # so that a resumed run never reads the preset's dataset instead
            settings = replace(settings, data=replace(settings.data, name=data.name))
            content = data.content_hash()
        if resume:
            run.check_content(content)
        first = None if resume else first_model(settings)
        if first is not None:
            settings = like(settings, first.config)
        episodes = open_episodes(settings, data, here.rank, here.world)
        height, width = episodes.size
        model = replace(settings.model, height=height, width=width, channels=episodes.channels)
        settings = replace(settings, model=model)
        check_fits(settings, first)
        if not here.is_first:
            return Trainer(settings, run, episodes, here, SilentView(), first).fit(resume, sleep_anew)
        with run.lock(), output_without_reader():
            if not resume:
                run.create(settings, content, identity(first) if first is not None else "")
            with make_view(settings, run, quiet) as view:
                return Trainer(settings, run, episodes, here, view, first).fit(resume, sleep_anew)


class Trainer:
    """One process of a run."""

    def __init__(
        self,
        settings: TrainSettings,
        run: Run,
        episodes: RunEpisodes,
        here: Processes,
        view: View,
        first: GenerativeModel | None = None,
    ) -> None:
        self.settings, self.run, self.episodes, self.here, self.view = settings, run, episodes, here, view
        torch.manual_seed(settings.seed)
        model = build_model(settings.model) if first is None else first
        self.phase: Phase = Awake(model.to(here.device), settings, episodes, here)
        self.update, self.seconds = 0, 0.0
        self.asleep_since: int | None = None
        self.awake_share = 1.0 - settings.sleep.share
        self.factor, self.pace = 1.0, Pace()
        self.identity = ""

    def fit(self, resume: bool, sleep_anew: bool = False) -> Ending:
        """Update until updates or minutes are used up, or a signal arrives; returns how it ended."""
        if self.here.is_first:
            self.identity = self.run.identity()
        if resume:
            self.restore(sleep_anew)
        elif self.here.is_first:
            self.save_progress()  # so a run without a checkpoint must have lost it
        self.phase.share()
        started = time.monotonic() - self.seconds
        checkpoint, picture = Due(self.settings.checkpoint_minutes), Due(self.settings.picture_minutes)
        with interruptions() as interrupted:
            while not self.finished() and not self.here.any(bool(interrupted)):
                if self.is_tired():
                    self.fall_asleep()
                self.step()
                self.seconds = self.here.largest(time.monotonic() - started)
                self.report()
                if checkpoint.now(self.update % self.settings.checkpoint_every == 0):
                    self.save()
                if picture.now():
                    self.draw()
            self.save()
            ending = Ending() if self.finished() else Ending(interrupted[0] if interrupted else signal.SIGINT)
            self.view.ended(self.update, interrupted=not ending)
        self.draw()
        return ending

    def restore(self, sleep_anew: bool = False) -> None:
        """Resume at the checkpoint; start from nothing if none has been written yet."""
        file = file_to_resume(self.run, sleep_anew)
        if file == self.run.sleep_file:
            self.phase = Asleep(self.phase.model, self.settings, self.episodes, self.here)
        if file is not None:
            self.load(file)
        if self.here.largest(float(self.update)) != self.update:
            raise InputError(
                f"Process {self.here.rank} does not see the checkpoint {self.run.checkpoint_file} that another one "
                "resumes from: put the run on a folder that all machines share."
            )
        if self.here.is_first:
            if sleep_anew:
                self.save_model()  # the awake one, since the next sleep could otherwise lose it
                self.run.sleep_file.unlink(missing_ok=True)
            self.run.keep_settings(self.settings)  # only now: a refused run stays as it was
            complaint = self.run.keep_metrics_until(self.update)
            if complaint and not isinstance(self.view, SilentView):
                say_once(complaint)

    def load(self, path: Path) -> None:
        """Read a checkpoint of the phase that the run is in."""
        phase = self.phase
        progress = load_checkpoint(path, phase.models(), phase.optimisers, phase.window.sums)
        self.update, self.seconds = progress.update, progress.seconds
        if progress.asleep_since is not None:
            self.asleep_since, self.awake_share = progress.asleep_since, progress.awake_share
        self.pace = Pace(self.update, self.seconds)

    def finished(self) -> bool:
        """Whether the updates or the minutes are used up, on any process."""
        return self.here.any(is_at_its_end(Progress(self.update, self.seconds), self.settings))

    def progress(self) -> float:
        """Share of the run that is done: by updates or by time, whichever is larger."""
        by_time = share_of_time(self.update, self.seconds, self.settings)
        return max(self.update / self.settings.updates, by_time)

    def is_tired(self) -> bool:
        """Whether the part of the run that is spent awake is over."""
        return self.asleep_since is None and self.progress() >= self.awake_share - ROUNDING

    def fall_asleep(self) -> None:
        """Save what was learned awake, and go on by dreaming."""
        self.save()
        self.asleep_since, self.awake_share = self.update, self.progress()
        self.phase = Asleep(self.phase.average.model, self.settings, self.episodes, self.here)
        if self.here.is_first:
            self.save_progress()
        self.phase.share()

    def done(self) -> float:
        """Share of the present phase that is done."""
        if self.asleep_since is None:
            return self.progress() / self.awake_share
        return (self.progress() - self.awake_share) / (1.0 - self.awake_share)

    def step(self) -> None:
        """One update."""
        try:
            self.factor = self.phase.step(self.update, self.update - (self.asleep_since or 0), self.done())
        except NotFinite as means:
            raise InputError(
                f"The loss or its gradient is not finite at update {self.update} (means: {means}); "
                f"{describe(self.checkpoint_file)}. Lower the rate, or set optimiser.clip."
            ) from None
        self.update += 1

    def report(self) -> None:
        """Write a line of metrics if it is time for one, with a validation if it is time for that too."""
        settings = self.settings
        due = self.update % settings.log_every == 0 or self.update % settings.validate_every == 0
        if not due or not self.here.is_first:
            return
        row = {**self.phase.window.row(self.update), "seconds": round(self.seconds, 3)}
        row["rate_factor"] = self.factor
        row["updates_per_second"] = self.pace.see(self.update, self.seconds)
        if self.update % settings.validate_every == 0:
            row |= self.validate()
        self.run.append_metrics(row)
        self.view.show(row)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Means over fixed episodes of held-out training classes, with the averaged weights."""
        rows = [
            validation(self.phase.average.model, self.episodes.valid.episode(number), self.settings, number)
            for number in range(VALIDATION_EPISODES)
        ]
        return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}

    @property
    def checkpoint_file(self) -> Path:
        """The checkpoint file of the present phase."""
        return self.run.checkpoint_file if self.asleep_since is None else self.run.sleep_file

    def save(self) -> None:
        """Write the checkpoint, then the model; one that is asleep is written only when it has slept enough.

        A kill between the two leaves the model of the previous checkpoint, and the file says so (see `state`).
        """
        for_use = (
            self.finished() or self.asleep_since is None
        )  # all processes are asked, and the first one writes
        if self.here.is_first:
            self.save_progress()
            if for_use:
                self.save_model()

    def state(self) -> Progress:
        """Where the run stands, as checkpoint and model record it."""
        return Progress(self.update, self.seconds, self.asleep_since, self.awake_share, self.identity)

    def save_progress(self) -> None:
        """Write the checkpoint."""
        phase = self.phase
        save_checkpoint(
            self.checkpoint_file, self.state(), phase.models(), phase.optimisers, phase.window.sums
        )

    def save_model(self) -> None:
        """Write the model."""
        save_model(self.phase.average.model, self.run.model_file, notes=header_of(self.state()))

    def draw(self) -> None:
        """Draw learning curves, and samples beside the memory that they come from."""
        if (
            not self.here.is_first
            or not self.settings.picture_minutes
            or not can_plot(isinstance(self.view, SilentView))
        ):
            return
        from vma.plotting.grids import samples_png  # here, as matplotlib takes a second to import
        from vma.plotting.learning import learning_curves
        from vma.training.pictures import draw_samples

        episode = self.episodes.valid.episode(0)
        drawn = draw_samples(self.phase.average.model, episode, self.here.device)
        write_atomically(self.run.folder / "samples.png", samples_png(drawn))
        if rows := self.run.metrics():
            write_atomically(self.run.folder / "curves.png", learning_curves(rows))


def can_plot(quiet: bool) -> bool:
    """Whether pictures can be drawn; if matplotlib is not installed, a sentence says so once."""
    try:
        importlib.import_module("matplotlib")
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        if not quiet:
            say_once(f"No pictures of the run are drawn. {missing}")
        return False
    return True


def validation(
    model: GenerativeModel, episode: Episode, settings: TrainSettings, number: int
) -> dict[str, float]:
    """NLL of one episode, and the share of targets whose own class has the most mass of q(a|x)."""
    device = next(model.parameters()).device
    x, memory = for_model(episode, device, settings.length)
    source = generator(settings.seed, number, 1 << 30, device)
    row = {"valid_nll": -float(model.bound(x, memory, settings.samples, generator=source).mean())}
    if model.has_addresses and isinstance(memory, Memory) and memory.labels is not None:
        q_a = addressed(model, "say where it looks").posterior(x, memory)
        mass = class_mass(q_a.log_probs.exp(), memory.labels)
        found = mass.argmax(1).cpu() == torch.from_numpy(episode.target_labels)
        row["valid_class_found"] = float(found.float().mean())
    return row


class Pace:
    """Updates per second since the previous call."""

    def __init__(self, update: int = 0, seconds: float = 0.0) -> None:
        self.last = (update, seconds)

    def see(self, update: int, seconds: float) -> float:
        """The rate since the last call, or since the start."""
        updates, passed = update - self.last[0], seconds - self.last[1]
        self.last = (update, seconds)
        return round(updates / passed, 3) if passed > 0 else 0.0


class Due:
    """Whether so many minutes have passed since something was last done; never, for 0 minutes."""

    def __init__(self, minutes: float) -> None:
        self.seconds, self.last = 60 * minutes, time.monotonic()

    def now(self, anyway: bool = False) -> bool:
        """Whether it is due, by time or `anyway`; if so, the clock starts again."""
        due = anyway or (self.seconds > 0 and time.monotonic() - self.last > self.seconds)
        if due:
            self.last = time.monotonic()
        return due


def check_precision(settings: TrainSettings, here: Processes) -> None:
    """Refuse mixed precision on a device that does not support it."""
    if settings.precision == "bfloat16" and here.device.type == "cpu":
        raise InputError(
            "precision='bfloat16' needs a GPU: on a CPU it is several times slower than float32."
        )
