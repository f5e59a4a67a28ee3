"""S(m, x), equations 5 and 6: how well a memory item fits a query, in the matching space."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from vma.latents import full_precision

# A key shorter than this is divided by this instead of by its norm, so that a zero key gives S = 0, not NaN.
NORM_FLOOR = 1e-4


@runtime_checkable
class Similarity(Protocol):
    """S(m_a, x), computed from what is needed once per item and once per target."""

    def keys(self, e: Float[Tensor, "memory matching"]) -> Float[Tensor, "memory matching"]:
        """k_a of every item, from its embedding e_a."""

    def queries(self, e: Float[Tensor, "*batch matching"]) -> Float[Tensor, "*batch matching"]:
        """q of every target, from its embedding e^q."""

    def scores(
        self, keys: Float[Tensor, "memory matching"], e: Float[Tensor, "*batch matching"]
    ) -> Float[Tensor, "*batch memory"]:
        """S(m_a, x) of every item and target, from the result of `keys()` and the query embeddings `e`."""


@dataclass(frozen=True)
class InnerProduct:
    """S(m_a, x) = <k_a, q>, with keys k and queries q optionally divided by their norms.

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


NORMALIZED_KEY = InnerProduct(normalize_keys=True, normalize_queries=False)  # the paper's, equation 5
INNER_PRODUCT = InnerProduct(normalize_keys=False, normalize_queries=False)
COSINE = InnerProduct(normalize_keys=True, normalize_queries=True)
