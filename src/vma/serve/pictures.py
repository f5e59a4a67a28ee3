"""Images on the wire: a client sends PNG as base64, and gets pixels of ink as base64."""

import base64
import binascii
import io

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from vma.data.folder import UNREADABLE
from vma.errors import InputError
from vma.serve.limits import SIDE


def read_png(text: str) -> Image.Image:
    """The image in a base64 text; its size is known to be harmless before a pixel is read."""
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InputError(
            "An image must be a PNG file as base64, without line breaks or a data: prefix."
        ) from None
    try:
        image = Image.open(io.BytesIO(content), formats=("PNG",))
        check_size(image)
        image.load()
    except UNREADABLE as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            "An image cannot be read: it is not a PNG file, is damaged, or is far too large."
        ) from None
    return image


def check_size(image: Image.Image) -> None:
    """Refuse images with too many pixels."""
    if max(image.size) > SIDE:
        raise InputError(f"An image has {image.width}x{image.height} pixels: send at most {SIDE}x{SIDE}.")


def pixels(images: Float[Tensor, "images *image"]) -> list[str]:
    """Each image row by row, one byte a pixel: 0 is empty, 255 is full ink."""
    levels = (images * 255).round().to(torch.uint8).cpu().numpy()
    return [base64.b64encode(np.ascontiguousarray(image).tobytes()).decode() for image in levels]
