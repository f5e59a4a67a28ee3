"""What networks know of a memory item."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Output:
    """What a decoder ends in.

    Attributes:
        maps: Numbers for every pixel.
        bias: Where each of them starts.
    """

    maps: int
    bias: tuple[float, ...]


@dataclass(frozen=True)
class ItemFeatures:
    """What p(z|m) and p(x|m,z) need of m alone, computed once per unique item.

    A layer on a concatenation is the sum of two layers, W[h, f_m] = W_h h + W_m f_m, so what is kept here is
    W_m f_m: a pair adds its own half to it.

    Attributes:
        prior: Statistics of p(z|m).
        decoder: The item's half of every layer of p(x|m,z).
    """

    prior: Float[Tensor, "items twice_latent"]
    decoder: tuple[Tensor, ...]


def add_half(
    y: Float[Tensor, "reads ..."], half: Float[Tensor, "items ..."], repeats: list[int] | None
) -> Float[Tensor, "reads ..."]:
    """y_r + half_i(r), in y's place, with i(r) the item of read r: row by row, or row i for `repeats[i]` reads.

    The latter needs no copies of an item's row, but has no gradient.
    """
    if repeats is None:
        return y.add_(half)
    torch._foreach_add_(list(y.split(repeats)), list(half.unbind()))
    return y
