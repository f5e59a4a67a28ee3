"""What is evaluated: a trained model, what it was trained on, and the images that it has not seen."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import torch

from vma.data import load_dataset
from vma.data.dataset import Dataset
from vma.errors import InputError
from vma.model import VMA, GenerativeModel
from vma.runs.checkpoint import Progress, is_at_its_end, read_progress
from vma.runs.folder import Run
from vma.runs.presets import PRESETS
from vma.runs.settings import EpisodeSettings, TrainSettings
from vma.storage import load_model

BINARIZATION_SEED = 0


@dataclass(frozen=True)
class TrainedRun:
    """A run's model and a part of its data.

    Attributes:
        model: The model, with averaged weights if the run has an average.
        dataset: The images to evaluate on; grey ones are binarized once.
        settings: The settings of the run.
        about: What every result says of the model and the data.
    """

    model: GenerativeModel
    dataset: Dataset
    settings: TrainSettings
    about: dict[str, Any]

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    @property
    def episode(self) -> EpisodeSettings:
        """Test episodes like those of training; after training on sequences, 4 targets and 4 items of a class."""
        trained = self.settings.episode
        return replace(trained, targets=4, shots=4) if trained.kind == "sequence" else trained

    def with_raw_memory(self, purpose: str) -> VMA:
        """The model, which must have a raw memory for that `purpose`, such as `classify`."""
        if not isinstance(self.model, VMA) or self.model.config.learned_items:
            kind = self.model.config.model
            raise InputError(f"Only a model with a raw memory can {purpose}, not a {kind}.")
        return self.model

    def generator(self, seed: int, part: int) -> torch.Generator:
        """The randomness of one part of the work: the same whatever process does it."""
        mixed = torch.Generator().manual_seed(seed * 1_000_003 + part)
        start = int(torch.randint(2**62, (), generator=mixed))
        return torch.Generator(self.device).manual_seed(start)


def open_run(
    run: Run, *, data: Path | None = None, part: str = "test", device: torch.device | str = "cpu"
) -> TrainedRun:
    """The model of `run` and the `part` of its dataset."""
    settings = run.settings()
    model = load_model(run.model_file).to(device).eval()
    chosen = settings.data
    dataset = load_dataset(
        chosen.name, part, size=chosen.size, split=chosen.split, data=data, folder=chosen.folder
    )
    if chosen.stochastic_binarization:
        dataset = dataset.binarized(BINARIZATION_SEED)
    return TrainedRun(
        model, dataset, settings, {"model": of_model(run, settings), "data": of_data(dataset, part)}
    )


def of_model(run: Run, settings: TrainSettings) -> dict[str, Any]:
    """What a result says of the model: how long it was trained, and all the settings it was trained with.

    `updates` are those awake; `hours` are of both. A sleep that is not complete has left the model as it was.
    """
    awake = read_progress(run.checkpoint_file)
    last = complete_sleep(run, settings) or awake
    return {
        "run": run.folder.name,
        "preset": settings.preset,
        "kind": settings.model.model,
        "maps": settings.model.maps if settings.model.family == "convolutional" else 0,
        "updates": awake.update,
        "sleep_updates": last.update - awake.update,
        "hours": round(last.seconds / 3600, 4),
        "seed": settings.seed,
        "weights": hashlib.sha256(run.model_file.read_bytes()).hexdigest()[:16],
        "overrides": overrides(settings),
        "settings": msgspec.to_builtins(settings),
    }


def complete_sleep(run: Run, settings: TrainSettings) -> Progress | None:
    """Where the run stood at the end of its sleep; None if it has not slept, or not to the end."""
    if not run.sleep_file.exists():
        return None
    progress = read_progress(run.sleep_file)
    return progress if is_at_its_end(progress, settings) else None


def overrides(settings: TrainSettings) -> dict[str, Any]:
    """The settings that differ from those of their preset, by dotted names; all of them if it is unknown."""
    preset = PRESETS.get(settings.preset)
    usual = dotted(msgspec.to_builtins(preset)) if preset else {}
    mine = dotted(msgspec.to_builtins(settings))
    return {name: value for name, value in mine.items() if name not in usual or usual[name] != value}


def dotted(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values in one dictionary, by names such as `optimiser.rate`."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= dotted(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def of_data(dataset: Dataset, part: str) -> dict[str, Any]:
    """What a result says of the data."""
    return {
        "name": dataset.name,
        "part": part,
        "split": dataset.split,
        "size": list(dataset.size),
        "images": len(dataset),
        "classes": len(dataset.classes),
    }
