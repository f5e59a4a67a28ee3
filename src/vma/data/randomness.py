"""Random streams that are the same on every machine: addressed by numbers, without state to carry along."""

import numpy as np
from jaxtyping import Int, UInt8

from vma.errors import InputError


def stream(seed: int, index: int = 0, purpose: int = 0) -> np.random.Generator:
    """The generator number `index` of `seed`; different (seed, index, purpose) give independent streams."""
    if not (0 <= seed < 2**63 and 0 <= index < 2**63):
        raise InputError(f"Seed {seed} and step {index} must be whole numbers from 0 to 2^63 − 1.")
    return np.random.Generator(np.random.Philox(key=[seed, purpose], counter=[0, 0, index, 0]))


def permutation(count: int, seed: int, index: int = 0, purpose: int = 0) -> Int[np.ndarray, "count"]:
    """A permutation of 0 … count − 1, made from raw Philox words so that every version of NumPy gives the same."""
    words = stream(seed, index, purpose).bit_generator.random_raw(count)
    return np.argsort(words, kind="stable")


def distinct_positions(
    draw: np.random.Generator, sizes: Int[np.ndarray, "classes"], count: int
) -> Int[np.ndarray, "classes count"]:
    """For each class, `count` distinct positions below its size, in random order, with all orders equally likely.

    Where repetitions are rare, positions are drawn independently, and rows with a repetition are drawn again;
    otherwise all positions are sorted by random keys.
    """
    if sizes.min() < count * count:
        keys = draw.random((len(sizes), int(sizes.max())))
        keys[np.arange(keys.shape[1]) >= sizes[:, None]] = np.inf
        return keys.argsort(axis=1)[:, :count]
    chosen = (draw.random((len(sizes), count)) * sizes[:, None]).astype(np.int64)
    while (repeated := (np.diff(np.sort(chosen, axis=1), axis=1) == 0).any(axis=1)).any():
        again = draw.random((int(repeated.sum()), count)) * sizes[repeated, None]
        chosen[repeated] = again.astype(np.int64)
    return chosen


def binarize(
    images: UInt8[np.ndarray, "*images"], generator: np.random.Generator
) -> UInt8[np.ndarray, "*images"]:
    """255 with probability image / 255, else 0, independently for each pixel; binary images stay as they are.

    >>> grey = np.full((1, 4, 4), 128, np.uint8)
    >>> set(vma.data.binarize(grey, np.random.default_rng(0)).ravel().tolist())
    {0, 255}
    """
    threshold = generator.integers(0, 255, size=images.shape, dtype=np.uint8)
    return np.where(threshold < images, np.uint8(255), np.uint8(0))
