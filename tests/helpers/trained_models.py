"""A small trained model and simple drawings."""

from pathlib import Path

import numpy as np
import torch

from tests.helpers.oracles import small_convolutional, small_mlp
from vma import ModelConfig, save_model
from vma.build import build_vma
from vma.fewshot import TrainedModel, load

SIZE = (17, 22)


def trained(folder: Path, config: ModelConfig | None = None, seed: int = 1) -> TrainedModel:
    """A model with random weights, saved and loaded; its learned prior is not flat."""
    torch.manual_seed(seed)
    model = build_vma(config or small_convolutional())
    if model.addressing.prior_query is not None:
        torch.nn.init.normal_(model.addressing.prior_query)
    folder.mkdir(parents=True, exist_ok=True)
    save_model(model, folder / "model.safetensors")
    return load(folder)


def trained_mlp(folder: Path) -> TrainedModel:
    """A model of 4×4 pixels and two latent dimensions, whose marginals can be computed."""
    return trained(folder, small_mlp())


def drawings(count: int, size: tuple[int, int] = SIZE, seed: int = 0) -> np.ndarray:
    """Binary drawings with an empty border, as 0 and 1."""
    inner = (count, size[0] - 2, size[1] - 2)
    ink = np.random.default_rng(seed).random(inner) < 0.3
    ink[:, 0, 0] = True
    return np.pad(ink, ((0, 0), (1, 1), (1, 1))).astype(np.uint8)
