"""The same invented characters and keys as those of the package, in half the time: loops for images of 0 and 1.

A pen's points are set one after the other. Of a layer on an image of 0 and 1, a pixel sees one of 512 patches, so
that the layer, its norm and its activation are computed once for each patch that an image has, and looked up. What
comes out is compared with the package's own in every block (`benchmarks.large_items`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numba
import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from vma.data import glyph_render
from vma.data.glyph_render import PEN, spline
from vma.kernels.maps import as_maps
from vma.networks.convolutional import Embedding

TAPS, AT_ONCE, HEAD_AT_ONCE = 9, 64, 4096


@contextmanager
def drawn_quickly() -> Iterator[None]:
    """A context in which characters are inked by a compiled loop."""
    with patch.object(glyph_render, "ink", ink):
        yield


def ink(images: np.ndarray, knots: np.ndarray, live: np.ndarray, radius: np.ndarray) -> None:
    """`glyph_render.ink`: sets to 255 each pixel that a pen touches on its way."""
    char, stroke = np.nonzero(live)
    way = spline(knots[char, stroke], n=8 if images.shape[-1] <= 40 else 16)
    stamp(images, char, way, PEN * radius[char, None, None] >> 4)


@numba.njit(cache=True)
def stamp(images: Any, char: Any, way: Any, pen: Any) -> None:
    """Every point of the pen at every point of the way."""
    size = images.shape[2]
    for row in range(len(char)):
        for point in range(way.shape[1]):
            for touched in range(pen.shape[1]):
                x = (way[row, point, 0] + pen[row, touched, 0]) * size >> 16
                y = (way[row, point, 1] + pen[row, touched, 1]) * size >> 16
                images[char[row], y, x] = 255


@torch.no_grad()
def embedded(
    network: Embedding, images: UInt8[np.ndarray, "items height width"]
) -> Float[Tensor, "items matching"]:
    """e = h(image) of images of 0 and 255."""
    bits = images > 0
    last = torch.cat(
        [upper_layers(network, part) for part in np.split(bits, range(AT_ONCE, len(bits), AT_ONCE))]
    )
    return torch.cat([network.head(part) for part in last.split(HEAD_AT_ONCE)])


def upper_layers(network: Embedding, bits: np.ndarray) -> Tensor:
    """The last level of the pyramid, flat."""
    pyramid = network.pyramid
    h = first_level(network, bits)
    for layer, finish in zip(pyramid.layers, list(pyramid.finishes)[1:], strict=True):
        h = finish(layer(h), h)
    return h.flatten(1)


def first_level(network: Embedding, bits: np.ndarray) -> Float[Tensor, "batch maps height width"]:
    """SiLU(norm(w * x + b)), by looking up patches."""
    norm, weight = network.pyramid.finishes[0].norm, network.first.weight.flatten(1).T.numpy()
    codes = codes_of(bits)
    rows, place = np.empty((codes.size, weight.shape[1]), np.float32), np.empty(codes.size, np.int32)
    used = normalised(
        codes.reshape(len(codes), -1), table_of(weight, network.first.bias.numpy()), norm.weight.numpy(),
        norm.bias.numpy(), norm.num_groups, norm.eps, rows, place,
    )  # fmt: skip
    values = torch.nn.functional.silu(torch.from_numpy(rows[:used]))
    return as_maps(values.index_select(0, torch.from_numpy(place)).view(*codes.shape, -1))


def table_of(weight: Float[np.ndarray, "taps maps"], bias: Float[np.ndarray, "maps"]) -> np.ndarray:
    """w * x + b of all 512 patches."""
    patches = (np.arange(1 << TAPS)[:, None] >> np.arange(TAPS) & 1).astype(np.float32)
    return patches @ weight + bias


def codes_of(bits: np.ndarray) -> Int[np.ndarray, "batch height width"]:
    """The number of the patch around each pixel."""
    _, height, width = bits.shape
    padded = np.pad(bits, ((0, 0), (1, 1), (1, 1))).astype(np.int16)
    codes = np.zeros(bits.shape, np.int16)
    for tap in range(TAPS):
        row, column = divmod(tap, 3)
        codes |= padded[:, row : row + height, column : column + width] << np.int16(tap)
    return codes


@numba.njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def normalised(
    codes: Any, table: Any, gain: Any, shift: Any, groups: int, eps: float, rows: Any, place: Any
) -> int:
    """The normalised values of each patch of each image, the row of every pixel among them, and their number."""
    pixels, each, used = codes.shape[1], table.shape[1] // groups, 0
    counts, row = np.zeros(len(table), np.int32), np.zeros(len(table), np.int32)
    for image in range(len(codes)):
        counts[:] = 0
        for code in codes[image]:
            counts[code] += 1
        there = np.flatnonzero(counts)
        for group in range(groups):
            total, square = 0.0, 0.0
            for code in there:
                for m in range(group * each, (group + 1) * each):
                    total += counts[code] * table[code, m]
                    square += counts[code] * table[code, m] * table[code, m]
            mean = total / (pixels * each)
            inverse = 1 / np.sqrt(max(square / (pixels * each) - mean * mean, 0.0) + eps)
            for i in range(len(there)):
                for m in range(group * each, (group + 1) * each):
                    rows[used + i, m] = (table[there[i], m] - mean) * inverse * gain[m] + shift[m]
        for i in range(len(there)):
            row[there[i]] = used + i
        for pixel in range(pixels):
            place[image * pixels + pixel] = row[codes[image, pixel]]
        used += len(there)
    return used
