"""Seconds of one update with hard and with soft reads, on invented characters: every model in turn."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np
import torch

from vma.checks import check_positive
from vma.data.glyphs import GlyphOptions, load_glyphs
from vma.data.samplers import EpisodeSampler
from vma.errors import InputError
from vma.memory import Memory
from vma.model import VMA
from vma.reproduce.sharp_addresses import sharpen_
from vma.runs.folder import Run
from vma.runs.processes import Processes
from vma.runs.settings import TrainSettings
from vma.training.episodes import RunEpisodes, for_model
from vma.training.loop import Trainer
from vma.training.view import SilentView

HARD = "vma"
SOFT = {"soft, pixels": "pixels", "soft, features": "features"}
Clock = Literal["wall", "cpu"]
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
CPU = torch.device("cpu")
CLASSES, DRAWERS = 8, 20


def update_seconds(
    settings: TrainSettings, items: int, targets: int, repeats: int, clock: Clock
) -> dict[str, float]:
    """Median seconds of one update at one |M|, of VMA and of each soft attention."""
    seconds = by_turns(updates(settings, items, targets), repeats, clock)
    return {name: median(each) for name, each in seconds.items()}


def by_turns(
    sides: Mapping[str, Callable[[], object]], repeats: int, clock: Clock = "wall"
) -> dict[str, list[float]]:
    """Seconds of every side in every round; whatever else the machine does slows all sides of a round alike.

    Args:
        sides: What to time, by name; each runs once to warm up, and then once in every round.
        repeats: Number of rounds.
        clock: `wall`, or `cpu`: seconds of this process's threads alone, for a machine that is shared.
    """
    check_positive(repeats=repeats)
    now = CLOCKS[clock]
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for run in sides.values():
        run()
    for _ in range(repeats):
        for name, run in sides.items():
            started = now()
            run()
            seconds[name].append(now() - started)
    return seconds


def updates(settings: TrainSettings, items: int, targets: int) -> dict[str, Callable[[], None]]:
    """One update of VMA and one of soft attention with one sample, on the same episode with the same networks."""
    trainers = {HARD: hard_trainer(settings, items, targets)}
    for name, reads in SOFT.items():
        model = replace(settings.model, model="soft-attention", reads=reads)
        soft = replace(settings, model=model, samples=1, latent_gradient="pathwise")
        trainers[name] = still_trainer(soft, glyph_sampler(items, targets))
    return {name: partial(first_update, each) for name, each in trainers.items()}


def first_update(training: Trainer) -> None:
    """Update 0 as `vma train` makes it: episode, bound, gradient, its norm, optimiser, metrics."""
    training.update = 0
    training.step()


def hard_trainer(settings: TrainSettings, items: int, targets: int) -> Trainer:
    """A still trainer of VMA, whose q(a|x) is as sharp at the episode of update 0 as a trained model's."""
    training = still_trainer(settings, glyph_sampler(items, targets))
    x, memory = for_model(training.episodes.train.episode(0), CPU)
    model = training.phase.model
    assert isinstance(model, VMA)
    assert isinstance(memory, Memory)
    sharpen_(model, x, memory, max(settings.samples, 2))  # a single read cannot show sharpness
    return training


def still_trainer(settings: TrainSettings, sampler: EpisodeSampler) -> Trainer:
    """A trainer with float32 weights that never move, so that its update 0 can be repeated."""
    episodes, here = RunEpisodes(sampler, sampler, (26, 26)), Processes(0, 1, CPU)
    found = Trainer(settings, Run(Path("unused")), episodes, here, SilentView())
    for model in (found.phase.model, found.phase.average.model):
        model.float()
    for optimiser in found.phase.optimisers:
        for group in optimiser.param_groups:
            group["initial_lr"] = 0.0
    return found


def glyph_sampler(items: int, targets: int) -> EpisodeSampler:
    """Episodes of `targets` targets from up to 8 classes, and a memory of `items`, of further classes if large."""
    if items < 1 or targets < 1:
        raise InputError(f"An episode needs at least one target and one item, not {targets} and {items}.")
    with_targets = math.gcd(CLASSES, targets)
    each = targets // with_targets
    shots = 4 if items <= 1024 else DRAWERS - each
    if each + shots > DRAWERS or shots < 1:
        raise InputError(
            f"{targets} targets are {each} of a class, of which there are {DRAWERS}: ask for fewer."
        )
    classes = max(with_targets, math.ceil(items / shots))
    glyphs = load_glyphs("train", glyphs=GlyphOptions(classes=classes + 1, test_classes=1, drawers=DRAWERS))
    counts = [items // classes + (i < items % classes) for i in range(classes)]
    return EpisodeSampler(
        glyphs, classes=with_targets, targets=each, shots=counts, distractors=classes - with_targets
    )


def crossing_of(seconds: Mapping[int, Mapping[str, float]], rival: str) -> float | None:
    """The |M| from which VMA is faster than a rival, by seconds at each |M|; None if it is not at the largest."""
    ours, other = ([each[side] for each in seconds.values()] for side in (HARD, rival))
    return crossing(list(seconds), ours, other)


def crossing(sizes: Sequence[int], ours: Sequence[float], other: Sequence[float]) -> float | None:
    """The size from which `ours` is smaller, by log-log interpolation between measured sizes.

    None if it is not smaller at the largest size; the smallest size if it is smaller everywhere.
    """
    gap = np.log(np.asarray(ours, dtype=float)) - np.log(np.asarray(other, dtype=float))
    if gap[-1] >= 0:
        return None
    above = np.flatnonzero(gap >= 0)
    if not above.size:
        return float(sizes[0])
    i = int(above[-1])
    share = gap[i] / (gap[i] - gap[i + 1])
    return float(np.exp((1 - share) * np.log(sizes[i]) + share * np.log(sizes[i + 1])))
