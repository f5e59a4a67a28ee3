"""Seconds of one update of every preset, awake and asleep: what `vma presets` reckons a run's time from.

    python -m benchmarks.preset_times src/vma/runs/preset_times.json

One thread, and seconds of the processor. On a busy machine an update takes more of these than on a quiet one, as
caches are shared; so all times are scaled by one number, which makes that of `REFERENCE` what its run took. Where
the files of omniglot28 are not here, its stand-in takes their place; it has images of the same size.
"""

import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import torch
import tyro

from vma.files import write_atomically
from vma.runs.folder import Run, circumstances
from vma.runs.listing import duration
from vma.runs.presets import PRESETS
from vma.runs.processes import Processes, keep_memory
from vma.runs.settings import TrainSettings
from vma.training.episodes import RunEpisodes, open_episodes
from vma.training.loop import Trainer
from vma.training.view import SilentView

REFERENCE = "omniglot-fewshot-4-fast"
REFERENCE_HOURS = 0.8169  # results/fig3-posterior.json: one thread, nothing else on its core
UPDATES = 2  # that are timed, after one that is not


def main(out: Path, presets: tuple[str, ...] = (), updates: int = UPDATES, stand_in: bool = True) -> None:
    """Time presets; those that are in the file already are kept.

    Args:
        out: The JSON file to write; other presets in it are kept.
        presets: Which; by default all that are not in the file yet.
        updates: Updates that are timed.
        stand_in: Take omniglot28-stand-in for omniglot28.
    """
    torch.set_num_threads(1)
    keep_memory()
    kept = json.loads(out.read_text())["measured"] if out.is_file() else {}
    for name in presets or tuple(name for name in PRESETS if name not in kept):
        kept[name] = seconds_of(name, updates, stand_in)
        print(name, kept[name], flush=True)
        write_atomically(out, json.dumps(record_of(kept, updates), indent=1).encode())


def record_of(measured: dict[str, dict[str, float]], updates: int) -> dict[str, Any]:
    """What is written: seconds as they were measured, and scaled."""
    scale = 1.0
    if REFERENCE in measured:
        scale = 3600 * REFERENCE_HOURS / duration(PRESETS[REFERENCE], measured[REFERENCE])
    seconds = {
        name: {phase: round(scale * value, 5) for phase, value in each.items()}
        for name, each in measured.items()
    }
    made = {
        "command": "python -m benchmarks.preset_times",
        "updates": updates,
        "threads": 1,
        **circumstances(),
    }
    reference = {"preset": REFERENCE, "hours": REFERENCE_HOURS, "scale": round(scale, 4)}
    return {**made, "reference": reference, "measured": measured, "seconds": seconds}


def seconds_of(name: str, updates: int, stand_in: bool) -> dict[str, float]:
    """Median seconds of an update of the processor, awake and, where the preset sleeps, asleep."""
    settings = replace(PRESETS[name], threads=1)
    if stand_in and settings.data.name == "omniglot28":
        settings = replace(settings, data=replace(settings.data, name="omniglot28-stand-in"))
    with tempfile.TemporaryDirectory() as folder:
        trainer = new_trainer(settings, Run(Path(folder)))
        found = {"awake": round(timed(trainer.step, updates), 5)}
        if settings.sleep.share:
            trainer.fall_asleep()
            found["asleep"] = round(timed(trainer.step, updates), 5)
    return found


def new_trainer(settings: TrainSettings, run: Run) -> Trainer:
    """A trainer of the preset on its own data."""
    episodes = episodes_of(settings)
    height, width = episodes.size
    settings = replace(settings, model=replace(settings.model, height=height, width=width))
    return Trainer(settings, run, episodes, Processes(0, 1, torch.device("cpu")), SilentView())


@cache
def episodes_of(settings: TrainSettings) -> RunEpisodes:
    """The episodes of a preset."""
    return open_episodes(settings, None)


def timed(step: Callable[[], Any], updates: int) -> float:
    """Median seconds of the processor of an update."""
    seconds = []
    for number in range(updates + 1):
        started = time.process_time()
        step()
        if number:
            seconds.append(time.process_time() - started)
    return median(seconds)


if __name__ == "__main__":
    tyro.cli(main)
