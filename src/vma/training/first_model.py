"""The model that a run begins with, where that is a trained one."""

from dataclasses import replace
from pathlib import Path

import torch

from vma.config import ModelConfig
from vma.data import DATASETS
from vma.errors import InputError
from vma.generative_model import GenerativeModel
from vma.runs.presets import PRESETS
from vma.runs.settings import TrainSettings
from vma.storage import load_model, model_file


def first_model(settings: TrainSettings) -> GenerativeModel | None:
    """The model that `settings.start` names, as precise as a new one; None for random weights."""
    if not settings.start:
        return None
    return load_model(model_file(Path(settings.start))).to(torch.get_default_dtype()).train()


def like(settings: TrainSettings, config: ModelConfig) -> TrainSettings:
    """The settings for a model of this configuration; images have its size, where no other was asked for."""
    preset = PRESETS.get(settings.preset)
    if preset is not None and settings.model not in (preset.model, config):
        raise InputError(
            f"The model {settings.start} brings its own configuration: leave out the settings that begin with "
            "model, or --start."
        )
    size = config.height if can_have_size_of(settings, config) else settings.data.size
    return replace(settings, model=config, data=replace(settings.data, size=size))


def can_have_size_of(settings: TrainSettings, config: ModelConfig) -> bool:
    """Whether the size of the images is still open, and may be that of the model."""
    entry = DATASETS.get(settings.data.name)
    if settings.data.size is not None or entry is None or config.height != config.width:
        return False
    return config.height in entry.sizes if entry.sizes else entry.takes("size")


def check_fits(settings: TrainSettings, first: GenerativeModel | None) -> None:
    """Refuse a first model whose images are not those of the data."""
    if first is None or first.config == settings.model:
        return
    model, data = first.config.image_shape, settings.model.image_shape
    raise InputError(
        f"The model {settings.start} has images of {shown(model)}, and {settings.data.name} has images of "
        f"{shown(data)}: choose another model for --start, or images of its size with --data.size."
    )


def shown(shape: tuple[int, ...]) -> str:
    """E.g. `26×26`, or `3×26×26` for images in colour."""
    return "×".join(map(str, shape))
