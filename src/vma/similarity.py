"""S(m, x), equations 5 and 6: how well a memory item fits a query, in the matching space."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from vma.errors import unknown_name
from vma.latents import full_precision

# A key shorter than this is divided by this instead of by its norm, so that a zero key gives S = 0, not NaN.
NORM_FLOOR = 1e-4


@dataclass(frozen=True)
class Similarity:
    """S(m_a, x) = <k_a, q>, with keys k and queries q divided by their norms or not.

    Normalising happens once per key and once per query, so that the similarities of |B| queries and |M|
    items are one matrix product, O(|M||B||e|).
    """

    normalize_keys: bool
    normalize_queries: bool

    def keys(self, e: Float[Tensor, "memory matching"]) -> Float[Tensor, "memory matching"]:
        """k_a = e_a / ||e_a||, or e_a."""
        e = full_precision(e)
        return normalize(e, dim=-1, eps=NORM_FLOOR) if self.normalize_keys else e

    def queries(self, e: Float[Tensor, "*batch matching"]) -> Float[Tensor, "*batch matching"]:
        """q = e^q / ||e^q||, or e^q."""
        return normalize(e, dim=-1, eps=NORM_FLOOR) if self.normalize_queries else e

    def scores(
        self, keys: Float[Tensor, "memory matching"], e: Float[Tensor, "*batch matching"]
    ) -> Float[Tensor, "*batch memory"]:
        """S(m_a, x) for `keys` as given by `keys()` and every query embedding in `e`."""
        with torch.autocast(keys.device.type, enabled=False):
            return self.queries(full_precision(e)) @ keys.T


def by_coordinate(keys: Float[Tensor, "memory matching"]) -> Float[Tensor, "memory matching"]:
    """The same keys, stored coordinate by coordinate: a single query then reads a large memory in its order."""
    return keys.T.contiguous().T


SIMILARITIES = {
    "normalized-key": Similarity(normalize_keys=True, normalize_queries=False),
    "inner-product": Similarity(normalize_keys=False, normalize_queries=False),
    "cosine": Similarity(normalize_keys=True, normalize_queries=True),
}


def similarity(name: str) -> Similarity:
    """The similarity of that name; `normalized-key` is the paper's equation 5."""
    if name not in SIMILARITIES:
        raise unknown_name("similarity", name, SIMILARITIES)
    return SIMILARITIES[name]
