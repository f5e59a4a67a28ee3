"""Feature maps in the layout `channels_last`, where a pixel's values lie together; also as rows of pixels."""

from jaxtyping import Float
from torch import Tensor

TAPS = 9
Maps = Float[Tensor, "batch maps _ _"]
Outputs = Float[Tensor, "batch outputs _ _"]  # feature maps whose number differs from that of the input
Rows = Float[Tensor, "batch _ _ maps"]
Image = Float[Tensor, "batch 1 height width"]


def planes(images: Float[Tensor, "batch *image"]) -> Float[Tensor, "batch channels height width"]:
    """Images with an axis for channels, even if there is only one channel."""
    return images.unsqueeze(1) if images.ndim == 3 else images


def as_rows(maps: Maps) -> Rows:
    """The same values with the maps as the last axis: contiguous, so rows of a batch are gathered as blocks."""
    return maps.permute(0, 2, 3, 1)


def as_maps(rows: Rows) -> Maps:
    """The inverse of `as_rows`."""
    return rows.permute(0, 3, 1, 2)
