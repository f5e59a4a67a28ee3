"""Training from Python: all that `vma train`, `vma train --resume` and `vma sleep` can do."""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vma.data import Dataset, dataset_of
from vma.errors import InputError, Interrupted, unknown_name
from vma.runs.checkpoint import Progress, is_at_its_end, read_progress
from vma.runs.folder import Run, default_root, settings_from
from vma.runs.presets import FAST_SLEEP, FAST_WARPS, PRESETS
from vma.runs.settings import NEVER, SleepSettings, TrainSettings
from vma.training.ending import Ending
from vma.training.loop import train_run
from vma.warps import WarpSettings

Data = Dataset | str | Path | Any


def train(
    settings: TrainSettings | str = "glyphs-fewshot-fast",
    data: Data = None,
    labels: Any = None,
    *,
    changes: Mapping[str, Any] | None = None,
    folder: str | Path | None = None,
    device: str = "auto",
    quiet: bool = False,
) -> Run:
    """Train a model, and keep it in a folder.

    >>> images, labels = np.random.default_rng(0).random((40, 16, 16)), np.repeat(range(10), 4)
    >>> small = {"updates": 2, "model.maps": 8, "episode.classes": 2, "episode.targets": 2, "episode.shots": 2}
    >>> run = vma.train("glyphs-fewshot", images, labels, changes={**small, "data.held_out": 4}, quiet=True)
    >>> vma.load(run.folder).size
    (16, 16)

    Args:
        settings: A preset of `vma presets`, or settings of your own.
        data: The images: a `Dataset`, or arrays [n, height, width] with `labels`. A path names the folder with the
            files of the settings' dataset; by default they are looked for where `vma train` does.
        labels: The class of each image, if `data` are arrays.
        changes: Settings to change, by their names on the command line, such as `model.maps`.
        folder: Folder of the run; the default is runs/PRESET-TIME.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        quiet: Show nothing.
    """
    changes = dict(changes or {})
    if changes.get("minutes"):
        changes.setdefault("updates", NEVER)  # the minutes end the run
    chosen = with_changes(find_preset(settings) if isinstance(settings, str) else settings, changes)
    run = Run(Path(folder) if folder else fresh_folder(chosen.preset))
    return ended(train_run(chosen, run, data=as_data(data, labels), device=device, quiet=quiet), run)


def resume(
    folder: str | Path,
    data: Data = None,
    labels: Any = None,
    *,
    updates: int | None = None,
    minutes: float | None = None,
    device: str = "auto",
    quiet: bool = False,
) -> Run:
    """Go on where a run stopped, with the same settings; the losses are those of an uninterrupted run.

    >>> small = {"updates": 2, "model.maps": 8, "picture_minutes": 0}
    >>> run = vma.train("glyphs-fewshot", changes=small, quiet=True)
    >>> vma.resume(run.folder, updates=3, quiet=True) == run
    True

    Args:
        folder: Folder of the run.
        data: The same data as before, if it was given.
        labels: The class of each image, if `data` are arrays.
        updates: A larger number of updates, to train longer.
        minutes: A larger time budget, counted from the run's start.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        quiet: Show nothing.
    """
    run = Run(Path(folder))
    settings = run.settings()
    if (updates, minutes) != (None, None):
        check_can_be_longer(run, settings)
    longer = replace(
        settings,
        updates=settings.updates if updates is None else updates,
        minutes=settings.minutes if minutes is None else minutes,
    )
    given = as_data(data, labels)
    return ended(train_run(longer, run, data=given, device=device, resume=True, quiet=quiet), run)


def sleep(
    folder: str | Path,
    data: Data = None,
    labels: Any = None,
    *,
    updates: int = 3000,
    minutes: float = 0.0,
    settings: SleepSettings = FAST_SLEEP,
    warps: WarpSettings = FAST_WARPS,
    threads: int | None = None,
    device: str = "auto",
    quiet: bool = False,
) -> Run:
    """Let a run sleep: q(a|x) learns from the model's own dreams, and nothing else changes.

    >>> small = {"updates": 2, "model.maps": 8, "picture_minutes": 0}
    >>> run = vma.train("glyphs-fewshot", changes=small, quiet=True)
    >>> vma.sleep(run.folder, updates=1, quiet=True) == run
    True

    Args:
        folder: Folder of the run.
        data: The same data as before, if it was given.
        labels: The class of each image, if `data` are arrays.
        updates: Updates asleep.
        minutes: Minutes asleep, instead of updates.
        settings: How it sleeps; `share`, `beside` and `begin` have no effect here.
        warps: How images are warped for the matching networks meanwhile.
        threads: Threads of torch; by default as many as the run had.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        quiet: Show nothing.
    """
    run = Run(Path(folder))
    asleep = with_sleep(run.settings(), awake_progress(run), updates, minutes, settings)
    asleep = replace(asleep, warps=warps, threads=asleep.threads if threads is None else threads)
    given = as_data(data, labels)
    done = train_run(asleep, run, data=given, device=device, resume=True, sleep_anew=True, quiet=quiet)
    return ended(done, run)


def ended(ending: Ending, run: Run) -> Run:
    """The run if it came to its end; an interrupted run has been saved, and the interruption is raised again."""
    if not ending:
        raise Interrupted(ending.signal)
    return run


def as_data(data: Data, labels: Any) -> Dataset | Path | None:
    """The data that training reads: a dataset, one made of arrays, or the folder of a dataset's files."""
    if data is None or isinstance(data, Dataset | str | Path):
        if labels is not None:
            raise InputError("Labels belong to arrays of images: leave them out, or give the arrays.")
        return Path(data) if isinstance(data, str) else data
    return dataset_of(data, labels)


def find_preset(name: str) -> TrainSettings:
    """The preset of that name."""
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return PRESETS[name]


def with_changes(settings: TrainSettings, changes: Mapping[str, Any]) -> TrainSettings:
    """The settings with some values changed, by dotted names such as `model.maps`; unknown names are refused."""
    values = msgspec.to_builtins(settings)
    for name, value in changes.items():
        if isinstance(value, Mapping):
            raise InputError(f"Change single settings, such as '{name}.NAME', not all of {name!r} at once.")
        *groups, last = name.replace("-", "_").split(".")
        place = values
        for group in groups:
            place = place.setdefault(group, {})
            if not isinstance(place, dict):
                raise InputError(f"The setting {group!r} has no parts, so {name!r} names none.")
        place[last] = value.item() if isinstance(value, np.generic) else value
    return settings_from(values)


def fresh_folder(preset: str) -> Path:
    """runs/PRESET-TIME; under torchrun, all processes use the first one's."""
    return default_root() / f"{preset or 'run'}-{time.strftime('%Y%m%d-%H%M%S')}"


def check_can_be_longer(run: Run, settings: TrainSettings) -> None:
    """Refuse to lengthen a run that has slept, or whose rate has fallen to its end and would rise again."""
    if run.sleep_file.exists():
        raise InputError(
            f"The run {run.folder} has fallen asleep, so it cannot be trained longer awake: "
            "start another one, or let it sleep again, for as long as you like, with 'vma sleep'."
        )
    done = run.checkpoint_file.exists() and is_at_its_end(read_progress(run.checkpoint_file), settings)
    falls = settings.optimiser.schedule != "constant" or settings.blind.start != settings.blind.end
    if done and falls:
        raise InputError(
            f"The run {run.folder} has come to the end of its falling rate, or of its blind targets, which must "
            "not come again: "
            "start another one of the length that you want, or let this one sleep with 'vma sleep'."
        )


def with_sleep(
    settings: TrainSettings, awake: Progress, updates: int, minutes: float, sleep: SleepSettings
) -> TrainSettings:
    """The settings of a run that ends with this sleep; its share is the part of the run that comes after waking."""
    if updates < 1 or minutes < 0:
        raise InputError("A sleep takes one or more updates, or some minutes.")
    if minutes:
        all_updates, all_minutes = NEVER, awake.seconds / 60 + minutes
        share = minutes / all_minutes
    else:
        all_updates, all_minutes = awake.update + updates, 0.0
        share = updates / all_updates
    return replace(
        settings,
        updates=all_updates,
        minutes=all_minutes,
        sleep=replace(sleep, share=share, beside=0.0, begin=0.0),
    )


def awake_progress(run: Run) -> Progress:
    """Where the run stood when it was last awake."""
    run.settings()
    progress = read_progress(run.checkpoint_file) if run.checkpoint_file.exists() else Progress()
    if progress.update == 0:
        raise InputError(f"The run {run.folder} has no checkpoint yet: train it first.")
    return progress
