"""Images of an answer inside its JSON; figures are drawn from them alone."""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from vma.plotting import embedding


def pack(images: Float[Tensor, "*images"]) -> dict[str, Any]:
    """Images in [0, 1] as a JSON value, which `vma.plotting.embedding.unpack` reads."""
    return embedding.pack(images.detach().cpu().float().numpy())
