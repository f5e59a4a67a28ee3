"""A run that is over in a second: glyphs of 16×16 pixels and a small perceptron."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from vma import ModelConfig
from vma.runs.folder import Run
from vma.runs.presets import PRESETS
from vma.runs.settings import DataSettings, EpisodeSettings, OptimiserSettings, TrainSettings
from vma.training.loop import train_run

SMALL = TrainSettings(
    preset="small",
    model=ModelConfig(height=16, width=16, family="mlp", hidden=(24, 12), latent=4, matching=8),
    data=DataSettings("glyphs", size=16, held_out=20),
    episode=EpisodeSettings(classes=4, targets=2, shots=2),
    optimiser=OptimiserSettings(name="muon", rate=2e-3, warmup=5, schedule="cosine", average=0.9, clip=50.0),
    samples=3,
    updates=30,
    seed=7,
    threads=1,
    log_every=5,
    validate_every=10,
    checkpoint_every=2,
    picture_minutes=0.0,
)
# A model of seven thousand weights, where a file of it is to be read or written very often.
SMALLER = replace(SMALL.model, hidden=(4,), latent=2, matching=2, item_layers="first")


def small(**changes: Any) -> TrainSettings:
    return replace(SMALL, **changes)


def tiny(name: str) -> TrainSettings:
    """A preset of any name, on glyphs by one override, with its networks and episodes made small."""
    settings = PRESETS[name]
    few = settings.episode
    model = replace(
        settings.model, maps=8, hidden=settings.model.hidden and tuple(8 for _ in settings.model.hidden),
        latent=4, matching=8, learned_items=min(settings.model.learned_items, 5),
    )  # fmt: skip
    episode = replace(few, classes=min(few.classes, 2), targets=2, shots=min(few.shots, 3))
    data = replace(settings.data, name="glyphs")
    return replace(
        settings,
        model=model,
        episode=episode,
        data=data,
        updates=2,
        log_every=1,
        validate_every=2,
        threads=1,
        picture_minutes=0.0,
    )


def fit(settings: TrainSettings, folder: Path, resume: bool = False, data: Path | None = None) -> Run:
    """Train without showing anything, in float32 as users do."""
    before, threads = torch.get_default_dtype(), torch.get_num_threads()
    torch.set_default_dtype(torch.float32)
    try:
        train_run(settings, Run(folder), data=data, resume=resume, quiet=True)
        return Run(folder)
    finally:
        torch.set_default_dtype(before)
        torch.set_num_threads(threads)


def losses(run: Run) -> list[dict[str, float]]:
    """All metrics but the time, to the last bit."""
    clock = ("seconds", "updates_per_second")
    return [{key: value for key, value in row.items() if key not in clock} for row in run.metrics()]


CHILDREN = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload(["tests.helpers.small_runs"])


def child(work: Callable[..., object], *arguments: object) -> BaseProcess:
    """A started process that calls `work`; forked from a server that has imported everything and run nothing."""
    process = CHILDREN.Process(target=work, args=arguments)
    process.start()
    return process


def ending(process: BaseProcess) -> int:
    """How the process ended, as in subprocess: a negative number is a signal."""
    process.join(120)
    assert process.exitcode is not None, "a child did not end"
    return process.exitcode


def torchrun(port: int, *arguments: str) -> str:
    """What `vma` prints as two processes; the command must end well."""
    launch = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--master-port",
        str(port),
    ]
    command, environment = [*launch, "-m", "vma", *arguments], {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def attempt(folder: Path, settings: TrainSettings = SMALL) -> None:
    """What a user does: start, or resume where there is a run."""
    fit(settings, folder, resume=(folder / "run.json").exists())


def mortal_attempt(folder: Path, moment: str, count: int, settings: TrainSettings = SMALL) -> None:
    """The same, killed at the given moment of the `count`-th atomic write, as a power cut would have it."""
    owner, name = (os, "fsync") if moment == "fsync" else (Path, "replace")
    real, seen = getattr(owner, name), [0]

    def mortal(*arguments: object) -> object:
        seen[0] += 1
        if moment != "after replace" and seen[0] == count:
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments)
        if seen[0] == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(owner, name, mortal)
    attempt(folder, settings)
