"""Optimisers, their rate over time, and the moving average of the weights."""

import copy
import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from vma.generative_model import GenerativeModel
from vma.networks.features import Head
from vma.runs.settings import OptimiserSettings
from vma.training.muon import Muon

CONVOLUTIONS = (nn.Conv2d, nn.ConvTranspose2d)
STEPS = (1.0, 0.3, 0.1)  # factors on the rates in equal parts of a run


def build_optimisers(model: nn.Module, settings: OptimiserSettings) -> list[torch.optim.Optimizer]:
    """Adam for everything, or Muon for matrices or kernels and Adam for the rest; a learned memory never decays."""
    layers = {"adam": (), "muon": (*CONVOLUTIONS, nn.Linear), "muon-kernels": CONVOLUTIONS}[settings.name]
    matrices = dict(muon_parameters(model, layers))
    rest = {name: p for name, p in model.named_parameters() if name not in matrices and p.requires_grad}
    free = [p for name, p in rest.items() if name.startswith("learned_memory.")]
    decayed = [p for name, p in rest.items() if not name.startswith("learned_memory.")]
    groups = [
        {"params": params, "weight_decay": decay}
        for params, decay in ((decayed, settings.weight_decay), (free, 0.0))
        if params
    ]
    adam = torch.optim.Adam(groups, lr=settings.rate, betas=(0.9, settings.beta2), fused=True)
    if not matrices:
        return [adam]
    kinds = transposed_kernels(model)
    split = [
        {
            "params": [p for name, p in matrices.items() if (name in kinds) == transposed],
            "transposed": transposed,
        }
        for transposed in (False, True)
    ]
    muon = Muon([g for g in split if g["params"]], settings.muon_rate, settings.weight_decay)
    return [muon, adam]


def muon_parameters(
    model: nn.Module, layers: tuple[type[nn.Module], ...]
) -> Iterator[tuple[str, nn.Parameter]]:
    """Weights of `layers` of these kinds, except heads and those with one map in or out.

    A head is the last layer of a Gaussian's statistics. It starts small and is left to Adam, as is e^p.
    """
    for name, module in model.named_modules():
        if isinstance(module, layers) and not isinstance(module, Head):
            weight = module.weight
            assert isinstance(weight, nn.Parameter)
            if min(weight.shape[:2]) > 1:
                yield f"{name}.weight", weight


def transposed_kernels(model: nn.Module) -> set[str]:
    """Names of the weights of transposed convolutions."""
    return {
        f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.ConvTranspose2d)
    }


def rate_factor(settings: OptimiserSettings, update: int, progress: float) -> float:
    """The factor on the rates at `update`, when a share `progress` of the run is done."""
    warm = min(1.0, (update + 1) / settings.warmup) if settings.warmup else 1.0
    if settings.schedule == "constant":
        return warm
    if settings.schedule == "steps":
        return warm * STEPS[min(int(len(STEPS) * progress), len(STEPS) - 1)]
    falling = 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    return warm * (settings.floor + (1 - settings.floor) * falling)


def set_rates(optimisers: list[torch.optim.Optimizer], factor: float) -> None:
    """rate ← initial rate × factor, for every group."""
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group.setdefault("initial_lr", group["lr"])
            group["lr"] = group["initial_lr"] * factor


class Average:
    """θ̄ ← d θ̄ + (1 − d) θ, with d = min(decay, (1 + n) / (10 + n)), so that a short run is not held back."""

    def __init__(self, model: GenerativeModel, decay: float) -> None:
        self.decay = decay
        self.model: GenerativeModel = copy.deepcopy(model).requires_grad_(False) if decay else model

    @torch.no_grad()
    def update(self, model: nn.Module, update: int) -> None:
        """Move towards `model` after update number `update`."""
        if self.decay:
            decay = min(self.decay, (1 + update) / (10 + update))
            ours: list[Tensor] = list(self.model.parameters())
            torch._foreach_lerp_(ours, list(model.parameters()), 1 - decay)
