"""What is evaluated: a trained model, its training settings, and images that it has not seen."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import torch

from vma.data import load_dataset
from vma.data.arrays import sha256_of
from vma.data.dataset import Dataset
from vma.errors import InputError
from vma.generative_model import AnyMemory, GenerativeModel
from vma.memory import Memory
from vma.model import VMA
from vma.runs.belonging import model_progress
from vma.runs.folder import Run
from vma.runs.presets import PRESETS
from vma.runs.settings import EpisodeSettings, TrainSettings
from vma.storage import identity, load_for_use

BINARIZATION_SEED = 0


@dataclass(frozen=True)
class ModelDescription:
    """What an answer records of the model: how long it was trained, and with which settings.

    Attributes:
        run: Name of the run's folder.
        preset: Its preset.
        kind: `vma`, or a baseline.
        maps: Feature maps; 0 if it has none.
        updates: Updates awake.
        sleep_updates: Updates asleep.
        hours: Hours of training, awake and asleep.
        seed: Seed of its training.
        weights: A hash of weights and configuration, whatever file they are in.
        overrides: The settings that differ from the preset's, by dotted names.
        settings: All of them.
    """

    run: str = ""
    preset: str = ""
    kind: str = ""
    maps: int = 0
    updates: int = 0
    sleep_updates: int = 0
    hours: float = 0.0
    seed: int = 0
    weights: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DataDescription:
    """What an answer records of the data.

    Attributes:
        name: Name of the dataset.
        part: The part of it, such as `test`.
        split: How it was divided into parts, and which one this is.
        size: Height and width, and channels of colour images.
        images: Number of images.
        classes: Number of classes.
    """

    name: str = ""
    part: str = ""
    split: str = ""
    size: list[int] = field(default_factory=list)
    images: int = 0
    classes: int = 0


@dataclass(frozen=True)
class About:
    """What every answer records of model and data."""

    model: ModelDescription = ModelDescription()
    data: DataDescription = DataDescription()


@dataclass(frozen=True)
class TrainedRun:
    """A run's model and a part of its data.

    Attributes:
        model: The model, with averaged weights if the run has them.
        dataset: The images to evaluate on; grey ones are binarized once.
        settings: The settings of the run.
        about: What every answer records of model and data.
        formerly: The model's name in older versions, which was a hash of its file, by its identity.
    """

    model: GenerativeModel
    dataset: Dataset
    settings: TrainSettings
    about: About = About()
    formerly: dict[str, str] = field(default_factory=dict)

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return next(self.model.parameters()).device

    @property
    def episode(self) -> EpisodeSettings:
        """Test episodes like those of training; after training on sequences, 4 targets and 4 items per class."""
        trained = self.settings.episode
        return replace(trained, targets=4, shots=4) if trained.kind == "sequence" else trained

    @property
    def addresses(self) -> VMA | None:
        """The model, if it addresses its memory: p(a) and q(a|x)."""
        return self.model if isinstance(self.model, VMA) else None

    @torch.no_grad()
    def keyed(self, memory: Memory | None) -> AnyMemory:
        """A raw memory with its keys, computed once for all uses; other models get the memory as it is."""
        return memory if memory is None or self.addresses is None else self.addresses.keyed(memory)

    def with_raw_memory(self, purpose: str) -> VMA:
        """The model, if it addresses a raw memory; else an error names the `purpose`, such as `classify`."""
        if self.addresses is None or self.model.config.learned_items:
            kind = self.model.config.model
            raise InputError(f"Only a model with a raw memory can {purpose}, not a {kind}.")
        return self.addresses

    def generator(self, seed: int, part: int) -> torch.Generator:
        """The randomness of one part of the work: the same whichever process does it."""
        mixed = torch.Generator().manual_seed(seed * 1_000_003 + part)
        start = int(torch.randint(2**62, (), generator=mixed))
        return torch.Generator(self.device).manual_seed(start)


def open_run(
    run: Run, *, data: Dataset | Path | None = None, part: str = "test", device: torch.device | str = "cpu"
) -> TrainedRun:
    """The model of `run` with the `part` of its dataset, or with a `Dataset` of your own as it is.

    >>> trained = vma.evaluation.open_run(run)  # what vma.train returned
    >>> isinstance(trained, vma.evaluation.TrainedRun), len(trained.dataset.classes)
    (True, ...)
    """
    settings = run.settings()
    model = load_for_use(run.model_file).to(device).eval()
    dataset = data if isinstance(data, Dataset) else load_part_of(run, settings, data, part)
    if settings.data.stochastic_binarization:
        dataset = dataset.binarized(BINARIZATION_SEED)
    about = About(describe_model(run, settings, model), describe_data(dataset, part))
    formerly = {about.model.weights: sha256_of(run.model_file)[:16]}
    return TrainedRun(model, dataset, settings, about, formerly)


def load_part_of(run: Run, settings: TrainSettings, data: Path | None, part: str) -> Dataset:
    """A part of the dataset that a run was trained on, if it can be loaded by a name."""
    if run.content():
        raise InputError(
            f"The run {run.folder} was trained on images given from Python: evaluate it from there too, with "
            "vma.evaluation.open_run(run, data=DATASET)."
        )
    chosen = settings.data
    return load_dataset(
        chosen.name, part, size=chosen.size, split=chosen.split, data=data, folder=chosen.folder
    )


def describe_model(run: Run, settings: TrainSettings, model: GenerativeModel) -> ModelDescription:
    """The model of a run; an incomplete sleep has not changed it."""
    trained = model_progress(run)
    return ModelDescription(
        run=run.folder.name,
        preset=settings.preset,
        kind=settings.model.model,
        maps=settings.model.maps if settings.model.family == "convolutional" else 0,
        updates=trained.awake,
        sleep_updates=trained.update - trained.awake,
        hours=round(trained.seconds / 3600, 4),
        seed=settings.seed,
        weights=identity(model)[:16],
        overrides=overrides(settings),
        settings=msgspec.to_builtins(settings),
    )


def overrides(settings: TrainSettings) -> dict[str, Any]:
    """The settings that differ from those of the preset, by dotted names; all settings if it is unknown."""
    preset = PRESETS.get(settings.preset)
    usual = dotted(msgspec.to_builtins(preset)) if preset else {}
    mine = dotted(msgspec.to_builtins(settings))
    return {name: value for name, value in mine.items() if name not in usual or usual[name] != value}


def dotted(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values in one flat dictionary, by names such as `optimiser.rate`."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= dotted(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def describe_data(dataset: Dataset, part: str) -> DataDescription:
    """A part of a dataset."""
    return DataDescription(
        name=dataset.name,
        part=part,
        split=dataset.split,
        size=list(dataset.size),
        images=len(dataset),
        classes=len(dataset.classes),
    )
