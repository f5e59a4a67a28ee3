"""Pages as people have them: drawings of lines with any pen, on any paper, in any light."""

import numpy as np
from PIL import Image, ImageDraw
from scipy import ndimage

CORNERS = 5


def sketch(seed: int, pen: float = 6, side: int = 240, at: tuple[float, float] = (0.5, 0.5)) -> np.ndarray:
    """Grey levels of a bent line, black on white, about half as large as its page, and not near its own parts.

    Args:
        seed: Which line.
        pen: Width in pixels on a page of 240.
        side: Of the page.
        at: Where its middle is, as shares of the page.
    """
    rng, fine = np.random.default_rng(seed), 2  # drawn at twice the size, so that its edges are soft
    steps = np.arange(CORNERS) / (CORNERS - 1)
    wave = rng.choice([-1, 1]) * (-1.0) ** np.arange(CORNERS) * rng.uniform(0.5, 1, CORNERS)
    points = np.stack([steps - 0.5, 0.35 * wave], -1) * 0.5
    turn = rng.uniform(0, 2 * np.pi)
    points = points @ np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]) + at
    page = Image.new("L", (fine * side, fine * side), 255)
    draw, width = ImageDraw.Draw(page), pen * fine * side / 240
    path = [(x * fine * side, y * fine * side) for x, y in points]
    draw.line(path, fill=0, width=round(width))
    for x, y in path:
        draw.ellipse((x - width / 2, y - width / 2, x + width / 2, y + width / 2), fill=0)
    return np.array(page.resize((side, side), Image.Resampling.BOX))


def lit(page: np.ndarray, angle: float, fall: float, level: float = 170, darkness: float = 0.7) -> np.ndarray:
    """The page in ink that takes `darkness` of the light; in one corner `fall` of that is lost."""
    down, across = np.meshgrid(*(np.linspace(-1, 1, side) for side in page.shape), indexing="ij")
    light = level * (1 + fall * (np.cos(angle) * across + np.sin(angle) * down) / np.sqrt(2))
    reflected = 1 - darkness * (1 - page / 255)
    return np.clip(np.rint(light * reflected), 0, 255).astype(np.uint8)


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """The largest share of the ink of one image that is not within a pixel of ink of the other."""
    one, other = one > 0, other > 0
    square = np.ones((3, 3))
    missed = [np.mean(~ndimage.binary_dilation(b, square)[a]) for a, b in ((one, other), (other, one))]
    return float(max(missed))
