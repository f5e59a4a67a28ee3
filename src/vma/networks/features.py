"""What networks know of a memory item."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class ItemFeatures:
    """Everything that depends on m alone, computed once per unique item.

    A layer on a concatenation is the sum of two layers, W[h, f_m] = W_h h + W_m f_m, so what is kept here is
    W_m f_m: a pair adds its own half to it.

    Attributes:
        prior: Statistics of p(z|m).
        encoder: The item's half of the first layer of q(z|m,x).
        decoder: The item's half of every layer of p(x|m,z).
    """

    prior: Float[Tensor, "items twice_latent"]
    encoder: Float[Tensor, "items *encoder"]
    decoder: tuple[Tensor, ...]

    @staticmethod
    def join(parts: Sequence["ItemFeatures"]) -> "ItemFeatures":
        """The features of the items of all `parts`."""
        halves = zip(*(part.decoder for part in parts), strict=True)
        return ItemFeatures(
            torch.cat([part.prior for part in parts]),
            torch.cat([part.encoder for part in parts]),
            tuple(torch.cat(half) for half in halves),
        )

    def read_decoder(self, read: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
        """The decoder's halves, one row per read."""
        return tuple(read(half) for half in self.decoder)
