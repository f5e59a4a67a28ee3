"""Pictures inside text: a PNG inside a page, and small images inside JSON."""

import base64
import zlib
from typing import Any

import numpy as np
from jaxtyping import Float


def data_uri(png: bytes) -> str:
    """The picture as a data URI."""
    return "data:image/png;base64," + base64.b64encode(png).decode()


def pack(images: Float[np.ndarray, "*images"]) -> dict[str, Any]:
    """Images in [0, 1] as a JSON value: eight bits a pixel, compressed, as text."""
    levels = (images.astype(np.float32).clip(0, 1) * 255).round().astype(np.uint8)
    return {
        "shape": list(levels.shape),
        "zlib": base64.b64encode(zlib.compress(levels.tobytes(), 9)).decode(),
    }


def unpack(packed: dict[str, Any]) -> Float[np.ndarray, "*images"]:
    """The images of a JSON value that `pack` made, in [0, 1]."""
    levels = np.frombuffer(zlib.decompress(base64.b64decode(packed["zlib"])), dtype=np.uint8)
    return levels.reshape(packed["shape"]).astype(np.float32) / 255
