"""What networks know of a memory item."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


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

    def read_decoder(self, read: Callable[[Tensor], Tensor]) -> tuple[Tensor, ...]:
        """The decoder's halves, one row per read."""
        return tuple(read(half) for half in self.decoder)
