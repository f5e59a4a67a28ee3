"""What the families share: the features of an item, the end of a decoder, and how weights are initialised."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True)
class Output:
    """The form in which a decoder ends.

    Attributes:
        maps: How many numbers it gives for every pixel.
        bias: The value at which each of them starts.
    """

    maps: int
    bias: tuple[float, ...]


@dataclass(frozen=True)
class ItemFeatures:
    """What p(z|m) and p(x|m,z) need of m alone, computed once per unique item.

    A layer on a concatenation is the sum of two layers, W[h, f_m] = W_h h + W_m f_m. What is kept here is W_m f_m,
    to which a pair adds its own half.

    Attributes:
        prior: Statistics of p(z|m).
        decoder: The item's half of every layer of p(x|m,z).
    """

    prior: Float[Tensor, "items twice_latent"]
    decoder: tuple[Tensor, ...]


def add_half(
    y: Float[Tensor, "reads ..."], half: Float[Tensor, "items ..."], repeats: list[int] | None
) -> Float[Tensor, "reads ..."]:
    """y_r + half_i(r), in place, where i(r) is the item of read r: row by row, or row i for `repeats[i]` reads.

    With `repeats`, an item's row is not copied, but there is no gradient.
    """
    if repeats is None:
        return y.add_(half)
    torch._foreach_add_(list(y.split(repeats)), list(half.unbind()))
    return y


def he_(weight: Tensor, fan_in: float | int, scale: float = 1.0) -> None:
    """w ~ N(0, 2 / fan_in) · scale, in place. `fan_in` counts the inputs of all halves of a split layer."""
    with torch.no_grad():
        weight.normal_(0.0, scale * math.sqrt(2.0 / fan_in))


class Head(nn.Linear):
    """The last layer for a Gaussian's statistics; it starts small, with μ near 0 and σ near 1."""


def linear(inputs: int, outputs: int, *, shared: int = 0, bias: bool = True, scale: float = 1.0) -> nn.Linear:
    """A fully-connected layer; if it is one of two halves, `shared` counts the inputs of the other."""
    layer = (nn.Linear if scale == 1.0 else Head)(inputs, outputs, bias=bias)
    he_(layer.weight, inputs + shared, scale)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def log_odds(share: float) -> float:
    """log share / (1 − share)."""
    return math.log(share / (1.0 - share))


def fill_bias(layer: nn.Module, values: Sequence[float]) -> None:
    """b = values, where each value fills an equal share of the units of `layer`, in order."""
    bias = layer.bias
    assert isinstance(bias, nn.Parameter)
    with torch.no_grad():
        bias.copy_(torch.tensor(values).repeat_interleave(len(bias) // len(values)))
