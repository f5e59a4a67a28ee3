"""He initialisation: signals keep their size through ReLU layers, so z is heard beside the skips from m."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn


def he_(weight: Tensor, fan_in: float | int, scale: float = 1.0) -> None:
    """w ~ N(0, 2 / fan_in) · scale, in place. `fan_in` counts all halves of a split layer."""
    with torch.no_grad():
        weight.normal_(0.0, scale * math.sqrt(2.0 / fan_in))


class Head(nn.Linear):
    """The last layer of a Gaussian's statistics, which starts small: μ near 0 and σ near 1."""


def linear(inputs: int, outputs: int, *, shared: int = 0, bias: bool = True, scale: float = 1.0) -> nn.Linear:
    """A fully-connected layer; `shared` counts the inputs of its other half, if it is one of two."""
    layer = (nn.Linear if scale == 1.0 else Head)(inputs, outputs, bias=bias)
    he_(layer.weight, inputs + shared, scale)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def log_odds(share: float) -> float:
    """log share / (1 − share)."""
    return math.log(share / (1.0 - share))


def fill_bias(layer: nn.Module, values: Sequence[float]) -> None:
    """b = values, each for an equal share of the units of `layer`, one share after the other."""
    bias = layer.bias
    assert isinstance(bias, nn.Parameter)
    with torch.no_grad():
        bias.copy_(torch.tensor(values).repeat_interleave(len(bias) // len(values)))
