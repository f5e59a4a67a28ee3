"""Feature maps whose values at a pixel lie together (`channels_last`), and their other name, rows of pixels."""

from jaxtyping import Float
from torch import Tensor

TAPS = 9
Maps = Float[Tensor, "batch maps _ _"]
Outputs = Float[Tensor, "batch outputs _ _"]  # maps of another number than those that went in
Rows = Float[Tensor, "batch _ _ maps"]
Image = Float[Tensor, "batch 1 height width"]


def planes(images: Float[Tensor, "batch *image"]) -> Float[Tensor, "batch channels height width"]:
    """Images with an axis for their channels, even if there is only one."""
    return images.unsqueeze(1) if images.ndim == 3 else images


def as_rows(maps: Maps) -> Rows:
    """The same values with the maps last: contiguous, so that rows of a batch are gathered as blocks."""
    return maps.permute(0, 2, 3, 1)


def as_maps(rows: Rows) -> Maps:
    """The inverse of `as_rows`."""
    return rows.permute(0, 3, 1, 2)
