"""The decoder's largest scale in one pass over memory, compiled by Numba where that is installed.

W_last * ReLU(W_up * h + half): most of what a decoder writes are the maps between these two layers. Here they
stay in the processor's registers. docs/lab-notes has the times.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from vma.chunks import slices
from vma.kernels.compiled import compiled
from vma.kernels.maps import TAPS, Image, Maps, as_rows

AT_ONCE = 8  # reads: their products fit into a processor's cache
MOST = 4  # products that may meet in one pixel

Halves = Float[Tensor, "items _ _ maps"]


def largest_scale(
    up: nn.ConvTranspose2d, last: nn.Conv2d, h: Maps, half: Halves, repeats: list[int]
) -> Image:
    """W_last * ReLU(W_up * h + half), where row i of `half` serves `repeats[i]` reads.

    W_up * h is a matrix product, which gives 3×3 pixels for each pixel of h, followed by a sum of those that
    coincide. Neither layer has a bias: it is part of the item's half.
    """
    (reads, maps, *small), (_, *large, _) = h.shape, half.shape
    pixels, each = as_rows(h).flatten(1, 2), small[0] * small[1] * TAPS
    spread = up.weight.permute(0, 2, 3, 1).flatten(1)
    kernel = last.weight.reshape(maps, TAPS).flip(1).T.contiguous().numpy()
    item = np.arange(len(repeats)).repeat(repeats)
    table, halves = sources(*small, *large), half.contiguous().numpy()
    y = h.new_zeros(reads, large[0] + 2, large[1] + 2)
    products = h.new_zeros(1 + AT_ONCE * each, maps)  # the first row stays zero, for pixels where fewer meet
    for part in slices(reads, AT_ONCE):
        used = products[: 1 + (part.stop - part.start) * each]
        torch.mm(pixels[part].flatten(0, 1), spread, out=used[1:].view(-1, TAPS * maps))
        compiled(add_pixels)(used.numpy(), each, table, halves, item[part], kernel, y[part].numpy())
    return y[:, None, 1:-1, 1:-1]


@cache
def sources(height: int, width: int, large_height: int, large_width: int) -> np.ndarray:
    """For each pixel, the products that meet in it, as row numbers within one read, counted from 1; 0 for none."""
    rows, columns = meeting(height, large_height), meeting(width, large_width)
    found = np.zeros((large_height, large_width, MOST), np.int64)
    for row, column in np.ndindex(large_height, large_width):
        here = [(i * width + j) * TAPS + 3 * r + s for i, r in rows[row] for j, s in columns[column]]
        found[row, column, : len(here)] = np.add(here, 1)
    return found


def meeting(size: int, large: int) -> list[list[tuple[int, int]]]:
    """For each pixel o of `large`, the pixels i of `size` and taps r with 2i + r − 1 = o."""
    return [
        [(i, r) for r in range(3) for i, odd in [divmod(o + 1 - r, 2)] if not odd and i < size]
        for o in range(large)
    ]


def add_pixels(products: Any, each: int, table: Any, half: Any, item: Any, kernel: Any, y: Any) -> None:
    """y_t += w_t · ReLU(half + Σ products) at every pixel of every read, for its nine neighbours t.

    A read has `each` products, and `table` says which of them meet (see `sources`). Each of the nine sums has its
    own name, so that the compiler keeps it in a register.
    """
    height, width, maps = half.shape[1:]
    zero = half.dtype.type(0)
    for read in range(len(y)):
        for row in range(height):
            for column in range(width):
                a, b, c, d = table[row, column]
                a, b = a + read * each if a else 0, b + read * each if b else 0
                c, d = c + read * each if c else 0, d + read * each if d else 0
                nw = n = ne = w = o = e = sw = s = se = zero
                for m in range(maps):
                    h = half[item[read], row, column, m] + products[a, m] + products[b, m]
                    h += products[c, m] + products[d, m]
                    h = zero if h < zero else h
                    nw, n, ne = nw + h * kernel[0, m], n + h * kernel[1, m], ne + h * kernel[2, m]
                    w, o, e = w + h * kernel[3, m], o + h * kernel[4, m], e + h * kernel[5, m]
                    sw, s, se = sw + h * kernel[6, m], s + h * kernel[7, m], se + h * kernel[8, m]
                # y has a border of one pixel, so neighbour t of a pixel is at that pixel's row and column plus t's.
                for t, sum_t in enumerate((nw, n, ne, w, o, e, sw, s, se)):
                    y[read, row + t // 3, column + t % 3] += sum_t
