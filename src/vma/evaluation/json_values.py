"""Results as JSON values: dataclasses as dictionaries, small images as text."""

from dataclasses import asdict, dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from vma.plotting import embedding


def plain(value: Any) -> dict[str, Any]:
    """A dataclass as nested dictionaries; fields that are None are left out."""
    if isinstance(value, dict):
        return value
    return asdict(value, dict_factory=lambda pairs: {name: each for name, each in pairs if each is not None})


@dataclass(frozen=True)
class PackedImages:
    """Images inside JSON, which `vma.plotting.embedding.unpack` reads; figures are drawn from them alone.

    Attributes:
        shape: Of the array.
        zlib: Eight bits a pixel, compressed, as text.
    """

    shape: list[int]
    zlib: str


def pack(images: Float[Tensor, "*images"]) -> PackedImages:
    """Images in [0, 1] as a JSON value."""
    return PackedImages(**embedding.pack(images.detach().cpu().float().numpy()))
