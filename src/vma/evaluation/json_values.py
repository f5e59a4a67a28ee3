"""Results as JSON values: dataclasses as dictionaries, small images as text."""

from dataclasses import asdict, dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from vma.plotting import embedding


def plain(value: Any) -> dict[str, Any]:
    """A dataclass as nested dictionaries, without fields that are None."""
    if isinstance(value, dict):
        return value
    return asdict(value, dict_factory=lambda pairs: {name: each for name, each in pairs if each is not None})


@dataclass(frozen=True)
class PackedImages:
    """Images inside JSON, from which figures are drawn; `vma.plotting.embedding.unpack` reads them.

    Attributes:
        shape: Shape of the array.
        zlib: Pixels of eight bits, compressed, as text.
    """

    shape: list[int]
    zlib: str


def pack(images: Float[Tensor, "*images"]) -> PackedImages:
    """Images in [0, 1] as a JSON value."""
    return PackedImages(**embedding.pack(images.detach().cpu().float().numpy()))
