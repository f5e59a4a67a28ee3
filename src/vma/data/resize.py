"""Three ways from a 105×105 drawing to a small image, in whole numbers so that every machine agrees."""

from collections.abc import Callable

import numpy as np
from jaxtyping import UInt8

SIDE = 105
SUBSAMPLED = np.arange(28) * SIDE // 28

Ink = UInt8[np.ndarray, "images 105 105"]


def max_pool_26(ink: Ink) -> UInt8[np.ndarray, "images 26 26"]:
    """255 · max over 4×4 blocks of the top-left 104×104 pixels (the paper's 26×26)."""
    blocks = ink[:, :104, :104].reshape(-1, 26, 4, 26, 4)
    rows = blocks[:, :, 0] | blocks[:, :, 1] | blocks[:, :, 2] | blocks[:, :, 3]
    return (rows[..., 0] | rows[..., 1] | rows[..., 2] | rows[..., 3]) * np.uint8(255)


def subsample_28(ink: Ink) -> UInt8[np.ndarray, "images 28 28"]:
    """255 · ink[r_i, r_j] with r_i = floor(105·i / 28), the rule of Generative Matching Networks."""
    return ink[:, SUBSAMPLED][:, :, SUBSAMPLED] * np.uint8(255)


def area_28(ink: Ink) -> UInt8[np.ndarray, "images 28 28"]:
    """255 · (share of ink in each of 28×28 cells of 3.75×3.75 pixels), rounded."""
    cells = _area_weights()
    quarters = cells @ ink.astype(np.float32) @ cells.T  # whole numbers up to 225, hence exact
    return ((255 * quarters.astype(np.int32) + 112) // 225).astype(np.uint8)


def _area_weights() -> np.ndarray:
    """[28, 105]: how many quarters of pixel j lie in cell i; each row sums to 15."""
    cell = np.repeat(np.arange(28), 15)
    pixel = np.repeat(np.arange(SIDE), 4)
    weights = np.zeros((28, SIDE), dtype=np.float32)
    np.add.at(weights, (cell, pixel), 1.0)
    return weights


def as_drawn(ink: Ink) -> Ink:
    """255 · ink."""
    return ink * np.uint8(255)


RESIZE: dict[str, Callable[[Ink], UInt8[np.ndarray, "images side side"]]] = {
    "max-pool-26": max_pool_26,
    "subsample-28": subsample_28,
    "area-28": area_28,
    "as-drawn": as_drawn,
}
