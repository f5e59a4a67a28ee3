"""A model in one file: weights as safetensors, the configuration as JSON in its header. No pickled code."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch
from torch import Tensor

from vma.allowance import Allowance
from vma.build import build_model
from vma.config import ModelConfig, config_from, config_of_file
from vma.errors import InputError
from vma.files import at_home, from_outside
from vma.generative_model import GenerativeModel
from vma.limits import WEIGHTS
from vma.pretrained import pretrained_names, weights_of
from vma.tensor_files import FileKind, Header, Tensors, read_header, read_tensors, write_tensors

MODEL_FILE = FileKind("vma-model", "model")
IN_RUN = "model.safetensors"  # name of the model's file in the folder of a run
HALF = (torch.float16, torch.bfloat16)
TYPES = (*HALF, torch.float32, torch.float64)


def save_model(
    model: GenerativeModel,
    path: str | Path,
    about: Mapping[str, str] | None = None,
    *,
    notes: Mapping[str, str] | None = None,
) -> None:
    """Write `model` to `path`, atomically.

    >>> vma.save_model(vma.build_vma(vma.paper_mlp()), "digits.safetensors", {"data": "my own digits"})

    Args:
        model: The model.
        path: The file.
        about: Names and sentences that describe it, shown by `vma info`.
        notes: Further entries for the header.
    """
    tensors = model.state_dict()
    if bad := not_finite(tensors):
        raise InputError(
            f"The model is not saved to {path}: its weights {bad!r} are not finite numbers, so all its "
            "answers would be wrong. Lower the rates that it was trained with."
        )
    header = {**(notes or {}), "config": msgspec.json.encode(model.config).decode()}
    if about:
        header["about"] = msgspec.json.encode(dict(about)).decode()
    write_tensors(Path(path), MODEL_FILE, header, tensors)


def load_model(path: str | Path) -> GenerativeModel:
    """The model in `path`, exactly as it was saved, with weights of the same type.

    >>> vma.save_model(vma.build_vma(vma.paper_mlp()), "digits.safetensors")
    >>> vma.load_model("digits.safetensors").config.latent
    32
    """
    config, tensors = read_model(Path(path))
    numbers = sum(tensor.numel() for tensor in tensors.values())
    with from_outside(f"{path} holds weights that do not fit its own configuration: it is damaged"):
        with Allowance(3 * numbers + WEIGHTS, str(path)):
            model = build_model(config)
        model = model.to(next(each.dtype for each in tensors.values() if each.is_floating_point()))
        check_types(model, tensors)
        model.load_state_dict(tensors)
    return model


def load_for_use(path: str | Path) -> GenerativeModel:
    """The model in `path`, in single precision if its weights are kept in half."""
    model = load_model(path)
    return model.float() if next(model.parameters()).dtype in HALF else model


def read_model(path: Path) -> tuple[ModelConfig, Tensors]:
    """Configuration and weights of `path`."""
    header, tensors = read_tensors(path, MODEL_FILE)
    config = read_config(path, header)
    check_weights(path, tensors)
    return config, tensors


def read_about(path: Path) -> dict[str, str]:
    """The description saved with the model in `path`; empty for files of earlier versions."""
    about = read_notes(path).get("about", "{}")
    with from_outside(f"{path} has no readable description: it is damaged"):
        return msgspec.json.decode(about, type=dict[str, str])


def read_notes(path: Path) -> Header:
    """Further entries of a model file's header, such as how long the model was trained."""
    return read_header(path, MODEL_FILE)


def read_config(path: Path, header: Mapping[str, str]) -> ModelConfig:
    """The configuration in a model file's header."""
    with from_outside(f"{path} has no readable configuration: it is damaged"):
        values = msgspec.json.decode(header.get("config", ""), type=dict[str, Any])
    try:
        return config_from(config_of_file(values))
    except InputError as error:
        raise InputError(f"{path} is damaged, or of another vma than this: {error}") from None


def check_weights(path: Path, tensors: Tensors) -> None:
    """Refuse weights that are not floating numbers, not all of one type, or not finite."""
    types = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
    if len(types) != 1 or not types <= set(TYPES):
        found = ", ".join(sorted(str(each).removeprefix("torch.") for each in types)) or "none"
        raise InputError(
            f"{path} must hold weights of one type, float16 to float64, but it holds {found}: it is damaged."
        )
    if bad := not_finite(tensors):
        raise InputError(f"{path} holds weights {bad!r} that are not finite numbers: train the model again.")


def check_types(model: GenerativeModel, tensors: Tensors) -> None:
    """Refuse a tensor of whole numbers where the model has floating weights."""
    own = model.state_dict()
    for name, each in tensors.items():
        if own[name].is_floating_point() != each.is_floating_point():
            raise TypeError(f"{name} is of another type")


def not_finite(tensors: Mapping[str, Tensor]) -> str:
    """The name of a tensor that holds a value that is not finite; empty if there is none."""
    return next((name for name, each in tensors.items() if not bool(each.isfinite().all())), "")


def identity(model: GenerativeModel) -> str:
    """A hash of the configuration and of all weights in a fixed order, whatever file they are in."""
    digest = hashlib.sha256(msgspec.json.encode(model.config))
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def model_file(path: Path) -> Path:
    """The file of a model, from the path of that file, the name of a model in the box, or the folder of a run."""
    if str(path) in pretrained_names():
        return weights_of(str(path))
    path = at_home(path)
    if not path.is_dir():
        return path
    places = [path / IN_RUN, path / "vma" / IN_RUN]
    for place in places:
        if place.is_file():
            return place
    raise InputError(f"{path} is a folder without a {IN_RUN}: name a run's folder, or the file of a model.")
