"""Where experiments keep the runs that they share: each run is found there, resumed, or trained."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from vma.config import READERS
from vma.data.omniglot28 import CHARDATA
from vma.data.picture import EARLIER
from vma.data.sources import locate
from vma.errors import InputError, unknown_name
from vma.reproduce.experiment import Needed, Scale
from vma.runs.belonging import is_trained
from vma.runs.folder import Run
from vma.runs.presets import PRESETS
from vma.runs.settings import NEVER, DataSettings, TrainSettings

TRAINING_SHARE = 0.75  # share of a budget; the rest is for evaluation
TINY_UPDATES = 3  # awake
DECISIVE = (
    "model", "start", "data", "episode", "optimiser", "sleep", "warps", "warp_awake", "blind", "address_after",
    "samples", "estimator", "latent_gradient", "updates", "minutes", "seed",
)  # fmt: skip
FIRST_OPTIONS = ("invert", "level", "crop", "margin", "binarize", "held_out", "seed", "skip_unreadable")
# Settings added later: with their defaults, runs made before them count as the same runs.
ADDED = (
    *(("model", name) for name in ("likelihood", "context_maps", "neighbourhood", "levels", "channels")),
    ("blind",),
    ("start",),
    ("search",),
    ("address_after",),
)


@dataclass(frozen=True)
class RunStore:
    """Where runs are kept and how they are trained.

    Attributes:
        root: Folder of the runs that experiments share.
        data: Folder with the data files.
        device: auto, cpu, cuda or cuda:N.
        threads: Threads of torch; 0 for torch's own choice.
    """

    root: Path
    data: Path | None = None
    device: str = "auto"
    threads: int = 0


def chosen(needs: Mapping[str, Needed], given: Mapping[str, Run], scale: Scale) -> dict[str, Needed]:
    """The runs that fit the budget, and the runs that were given."""
    if unknown := [key for key in given if key not in needs]:
        raise unknown_name("run of this experiment", unknown[0], needs)
    return {
        key: need
        for key, need in needs.items()
        if key in given or not scale.budget or scale.budget >= need.least
    }


def minutes_each(scale: Scale, runs: int) -> float:
    """The minutes that each of `runs` runs may take; 0 for no limit."""
    return scale.budget * TRAINING_SHARE / max(1, runs)


def settings_of(need: Needed, scale: Scale, store: RunStore, minutes: float) -> TrainSettings:
    """The settings of a run: the paper's, or those for a small budget with its minutes."""
    fast = f"{need.preset}-fast"
    limited = scale.budget or scale.updates
    settings = need.change(PRESETS[fast if limited and fast in PRESETS else need.preset])
    settings = replace(with_data_at_hand(settings, store.data), threads=store.threads)
    if scale.tiny:
        return tiny(settings)
    if scale.updates:
        return replace(settings, updates=scale.updates)
    return replace(settings, minutes=minutes, updates=NEVER) if minutes else settings


def with_data_at_hand(settings: TrainSettings, data: Path | None) -> TrainSettings:
    """The settings with the stand-in for Burda's Omniglot, if his file is not on this machine."""
    if settings.data.name != "omniglot28" or locate(CHARDATA, data):
        return settings
    return replace(settings, data=replace(settings.data, name="omniglot28-stand-in"))


def tiny(settings: TrainSettings) -> TrainSettings:
    """The same on glyphs, in a second: a few updates of a small model and a short sleep, to see that all works."""
    model, episode = settings.model, settings.episode
    return replace(
        settings,
        model=replace(
            model, maps=8, hidden=(8,) * len(model.hidden), latent=4, matching=8,
            learned_items=min(6, model.learned_items), item_size=8,
        ),
        data=DataSettings("glyphs", size=16, held_out=40),
        episode=replace(
            episode, classes=min(2, episode.classes), targets=2, shots=min(2, episode.shots), episodes=1
        ),
        sleep=replace(settings.sleep, dreams=2, classes=(), shots=0),
        address_after=min(1, settings.address_after),
        samples=min(2, settings.samples), updates=round(TINY_UPDATES / (1 - settings.sleep.share)), minutes=0.0,
        log_every=1, validate_every=3, picture_minutes=0.0,
    )  # fmt: skip


def folder_name(settings: TrainSettings, variant: str, is_tiny: bool) -> str:
    """E.g. `omniglot-fewshot-4-fast-flat-prior-1a2b3c`: the same for the same settings, whoever asks.

    Runs of different lengths have different folders. If the rate falls towards the end of a run, half of a long run
    does not equal a short one, and a short one cannot be lengthened.
    """
    text = json.dumps(decisive(settings), sort_keys=True)
    words = [
        settings.preset,
        variant,
        "tiny" if is_tiny else "",
        hashlib.sha256(text.encode()).hexdigest()[:6],
    ]
    return "-".join(word for word in words if word)


def decisive(settings: TrainSettings) -> dict[str, Any]:
    """The settings that decide what is learned, as plain values."""
    values, usual = msgspec.to_builtins(settings), msgspec.to_builtins(TrainSettings())
    found = {key: values[key] for key in DECISIVE}
    if settings.data.name != "folder":  # otherwise these options have no effect: keep them as in older runs
        found["data"]["folder"] = {key: EARLIER[key] for key in FIRST_OPTIONS}
    for *groups, name in ADDED:
        mine, theirs = found, usual
        for group in groups:
            mine, theirs = mine[group], theirs[group]
        if mine.get(name) == theirs[name]:
            del mine[name]
    if settings.model.family != "mlp" or settings.model.model not in READERS:
        del found["model"]["item_layers"]  # without effect in this family, and absent from older runs
    return found


def obtain_run(need: Needed, scale: Scale, store: RunStore, minutes: float) -> Run | None:
    """The run, trained to its end; None if training was interrupted."""
    settings = settings_of(need, scale, store, minutes)
    run = Run(store.root / folder_name(settings, need.variant, scale.tiny))
    if run.settings_file.exists():
        check_same(run, settings)
    if is_trained(run):
        print(f"  reusing {run.folder}", flush=True)
        return run
    length = f"{minutes:.1f} minutes" if settings.minutes else f"{settings.updates} updates"
    print(f"  training {run.folder}: {length}", flush=True)
    return run if train_on(run, settings, store, quiet=scale.tiny) else None


def check_same(run: Run, wanted: TrainSettings) -> None:
    """Refuse a run that has gone on with other settings since; the size of its images may follow the data."""
    found = run.settings()
    model = replace(wanted.model, height=found.model.height, width=found.model.width)
    if decisive(found) != decisive(replace(wanted, model=model)):
        raise InputError(
            f"The run {run.folder} has gone on with other settings than it was started with: move it elsewhere, "
            "or give it by --run."
        )


def train_on(run: Run, settings: TrainSettings, store: RunStore, quiet: bool) -> bool:
    """Start the run or go on with it; returns whether it came to its end."""
    from vma.training.loop import train_run

    resume = run.settings_file.exists()
    if resume:
        settings = replace(run.settings(), threads=settings.threads)
    return bool(train_run(settings, run, data=store.data, device=store.device, resume=resume, quiet=quiet))


def given_run(text: str) -> tuple[str, Run]:
    """`KEY=FOLDER` as the name and the run; a folder without a trained model is refused."""
    key, sign, folder = text.partition("=")
    if not (key and sign and folder):
        raise InputError(f"--run {text} is not of the form KEY=FOLDER, such as vma=runs/mine.")
    run = Run(Path(folder))
    run.settings()
    if not run.model_file.exists():
        raise InputError(f"The run {folder} has no saved model yet: train it further.")
    return key, run
