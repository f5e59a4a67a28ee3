"""A model in one file: weights as safetensors, the configuration as JSON in its header. No pickled code."""

from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from vma.build import build_model
from vma.config import ModelConfig, config_from, config_of_file
from vma.errors import InputError
from vma.files import write_atomically
from vma.generative_model import GenerativeModel
from vma.pretrained import pretrained_names, weights_of

FORMAT = "vma-model"
VERSION = 1
IN_RUN = "model.safetensors"  # name of the model's file in a run's folder


def save_model(model: GenerativeModel, path: str | Path) -> None:
    """Write `model` to `path`, atomically.

    >>> vma.save_model(vma.build_vma(vma.paper_mlp()), "digits.safetensors")
    """
    header = {
        "format": FORMAT,
        "version": str(VERSION),
        "config": msgspec.json.encode(model.config).decode(),
    }
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    write_atomically(Path(path), save(tensors, metadata=header))


def load_model(path: str | Path) -> GenerativeModel:
    """The model in `path`, exactly as it was saved, including the type of its weights.

    >>> vma.save_model(vma.build_vma(vma.paper_mlp()), "digits.safetensors")
    >>> vma.load_model("digits.safetensors").config.latent
    32
    """
    config, tensors = read_model(Path(path))
    model = build_model(config).to(next(iter(tensors.values())).dtype)
    try:
        model.load_state_dict(tensors)
    except RuntimeError:
        raise InputError(
            f"{path} holds weights that do not fit its own configuration: it is damaged."
        ) from None
    return model


def read_model(path: Path) -> tuple[ModelConfig, dict[str, torch.Tensor]]:
    """Configuration and weights of `path`."""
    if not path.is_file():
        raise InputError(f"There is no model file {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            config = read_config(path, file.metadata() or {})
            return config, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is not a model file, or is damaged: {error}.") from None


def read_config(path: Path, header: dict[str, str]) -> ModelConfig:
    """The configuration in a model file's header."""
    if header.get("format") != FORMAT:
        raise InputError(f"{path} is a safetensors file, but not one of a vma model.")
    version = header.get("version", "")
    if not version.isdecimal() or int(version) > VERSION:
        raise InputError(f"{path} has format version {version!r}, newer than this vma reads: update vma.")
    try:
        return config_from(config_of_file(msgspec.json.decode(header.get("config", ""))))
    except msgspec.DecodeError:
        raise InputError(f"{path} has no readable configuration: it is damaged.") from None


def model_file(path: Path) -> Path:
    """The file of a model: `path` itself, that of a model in the box, or the one in the folder of a run."""
    if str(path) in pretrained_names():
        return weights_of(str(path))
    path = path.expanduser()
    if not path.is_dir():
        return path
    places = [path / IN_RUN, path / "vma" / IN_RUN]
    for place in places:
        if place.is_file():
            return place
    raise InputError(f"{path} is a folder without a {IN_RUN}: name a run's folder, or the file of a model.")
