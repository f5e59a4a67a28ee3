"""Small images inside JSON: eight bits a pixel, compressed, as text; figures are drawn from them alone."""

import base64
import zlib
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor


def pack(images: Float[Tensor, "*images"]) -> dict[str, Any]:
    """Images in [0, 1] as a JSON value."""
    levels = (images.detach().cpu().float().clamp(0, 1) * 255).round().to(torch.uint8).numpy()
    text = base64.b64encode(zlib.compress(levels.tobytes(), 9)).decode()
    return {"shape": list(levels.shape), "zlib": text}


def unpack(packed: dict[str, Any]) -> Float[np.ndarray, "*images"]:
    """The images of a JSON value, in [0, 1]."""
    levels = np.frombuffer(zlib.decompress(base64.b64decode(packed["zlib"])), dtype=np.uint8)
    return levels.reshape(packed["shape"]).astype(np.float32) / 255
