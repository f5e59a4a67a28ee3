"""A model whose addressing works untrained, and drawings as a page sends them."""

import base64
import io
import math

import torch
from PIL import Image, ImageDraw

from vma import VMA, ModelConfig
from vma.build import build_vma

SIDE, GRID = 26, 8
Points = list[tuple[float, float]]

RING: list[Points] = [
    [(0.5 + 0.3 * math.cos(t / 10 * math.pi), 0.5 + 0.3 * math.sin(t / 10 * math.pi)) for t in range(21)]
]
CROSS: list[Points] = [[(0.2, 0.2), (0.8, 0.8)], [(0.8, 0.2), (0.2, 0.8)]]
BAR: list[Points] = [[(0.5, 0.15), (0.5, 0.85)]]


def blurring_model() -> VMA:
    """S(m, x) compares blurred images, so that q(a|x) prefers the item that looks most like the target."""
    config = ModelConfig(family="mlp", hidden=(GRID**2,), latent=4, matching=GRID**2, tied=True, prior="flat")
    model = build_vma(config).float()
    first, last = (each for each in model.addressing.key.modules() if isinstance(each, torch.nn.Linear))
    places, centres = torch.arange(SIDE).float(), torch.linspace(2, SIDE - 3, GRID).float()
    bump = torch.exp(-((places - centres[:, None]) ** 2) / 8)
    with torch.no_grad():
        first.weight.copy_(torch.kron(bump, bump))
        last.weight.copy_(3 * (torch.eye(GRID**2) - 1 / GRID**2))
        first.bias.zero_()
        last.bias.zero_()
    return model


def drawing(strokes: list[Points], *, side: int = 208, shift: float = 0.0) -> str:
    """Black strokes on white paper, as base64 PNG."""
    image = Image.new("L", (side, side), 255)
    pen = ImageDraw.Draw(image)
    for stroke in strokes:
        points = [((x + shift) * side, (y + shift) * side) for x, y in stroke]
        pen.line(points, fill=0, width=side // 13, joint="curve")
    return encode(image)


def encode(image: Image.Image) -> str:
    """An image as base64 PNG."""
    file = io.BytesIO()
    image.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()
