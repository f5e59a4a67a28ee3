"""3×3 convolutions with a third of the products, by tiles: Winograd's F(4×4, 3×3), its sums compiled by Numba.

y = Aᵀ [(G w Gᵀ) ⊙ (Bᵀ x B)] A for each tile of 4×4 pixels of y and 6×6 of x, where ⊙ is a product of matrices of
maps at each of 36 places (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016). The result
equals torch's convolution up to rounding errors, which are three to seven times as large.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from vma.chunks import slices
from vma.kernels.compiled import applies, compiled
from vma.kernels.maps import TAPS, Maps, Outputs, Rows, as_maps, as_rows

TILE, PLACES = 4, 6  # pixels along a tile, of y and of x
TILES_AT_ONCE = 256  # what is computed for so many fits into a processor's cache
FEWEST_MAPS = 40  # with fewer, the sums take longer than the products that they save
G = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)
Kernel = Float[Tensor, "outputs maps 3 3"]


class Same(nn.Conv2d):
    """A 3×3 convolution that keeps the size: torch's own, or by tiles where these save time."""

    def forward(self, h: Maps) -> Outputs:
        """Maps of h's size."""
        if h.shape[1] < FEWEST_MAPS or not applies(h):
            return super().forward(h)
        y = by_tiles(h, self.weight)
        return y if self.bias is None else y.add_(self.bias.view(-1, 1, 1))


def by_tiles(h: Maps, weight: Kernel) -> Outputs:
    """w * h with zeros around h, for some reads at a time; pixels beside the tiles are computed separately."""
    x, kernel = as_rows(h).contiguous(), in_places(weight)
    (reads, height, width, _), outputs = x.shape, len(weight)
    high, wide = tiles_along(height), tiles_along(width)
    y = x.new_empty(reads, height, width, outputs)
    for part in slices(reads, max(1, TILES_AT_ONCE // (high * wide))):
        convolve_(x[part], kernel, y[part], high, wide)
    maps = as_maps(y)
    if TILE * high < height:
        maps[:, :, -1:] = last_row(h, weight)
    if TILE * wide < width:
        maps[:, :, :, -1:] = last_row(h.mT, weight.mT).mT
    return maps


def tiles_along(size: int) -> int:
    """Number of tiles along a side: enough for all pixels, or for all but one, which costs less separately."""
    return max(1, (size + TILE - 2) // TILE)


def last_row(h: Maps, weight: Kernel) -> Outputs:
    """The last row of w * h, from the last two rows of h."""
    rows = h[:, :, -2:].contiguous(memory_format=torch.channels_last)
    return functional.conv2d(rows, weight[:, :, :2], padding=(0, 1))


def convolve_(
    x: Rows,
    kernel: Float[Tensor, "places maps outputs"],
    y: Float[Tensor, "batch _ _ outputs"],
    high: int,
    wide: int,
) -> None:
    """y = w * x in `high` × `wide` tiles: sums along columns and rows, products, sums along rows and columns."""
    (reads, _, width, maps), outputs = x.shape, y.shape[3]
    lines = reads * high
    down = spread(x.flatten(2), high)
    across = spread(down.view(PLACES * lines, width, maps), wide)
    products = torch.bmm(across.view(PLACES**2, lines * wide, maps), kernel)
    columns = x.new_empty(PLACES * lines, width, outputs)  # a column beside the tiles is filled in later
    join_(products.view(PLACES, PLACES * lines, wide, outputs), columns)
    join_(columns.view(PLACES, reads, high, width * outputs), y.flatten(2))


def in_places(weight: Kernel) -> Float[Tensor, "places maps outputs"]:
    """G w Gᵀ at each of the 6×6 places, column by column, as matrices that multiply rows of maps."""
    g = torch.tensor(G, dtype=weight.dtype)
    taps = weight.permute(3, 2, 1, 0).reshape(TAPS, -1)
    return (torch.kron(g, g) @ taps).view(PLACES**2, weight.shape[1], weight.shape[0])


def spread(x: Float[Tensor, "lines size values"], tiles: int) -> Float[Tensor, "places lines tiles values"]:
    """Bᵀ x for every tile."""
    lines, _, values = x.shape
    y = x.new_empty(PLACES, lines, tiles, values)
    compiled(spread_tiles)(x.numpy(), x.new_zeros(values).numpy(), y.numpy())
    return y


def join_(m: Float[Tensor, "places lines tiles values"], y: Float[Tensor, "lines size values"]) -> None:
    """y = Aᵀ m for every tile."""
    compiled(join_tiles)(m.numpy(), y.new_empty(y.shape[2]).numpy(), y.numpy())


def spread_tiles(x: Any, zero: Any, y: Any) -> None:
    """y = Bᵀ x for the six pixels of every tile, from the one before it to the one after it; `zero` if outside."""
    size, values = x.shape[1:]
    two, four, five = x.dtype.type(2), x.dtype.type(4), x.dtype.type(5)
    for line in range(len(x)):
        for tile in range(y.shape[2]):
            i = TILE * tile
            x0, x1 = x[line, i - 1] if i else zero, x[line, i]
            x2 = x[line, i + 1] if i + 1 < size else zero
            x3 = x[line, i + 2] if i + 2 < size else zero
            x4 = x[line, i + 3] if i + 3 < size else zero
            x5 = x[line, i + 4] if i + 4 < size else zero
            for v in range(values):
                a, b = x4[v] - four * x2[v], x3[v] - four * x1[v]
                c, d = x4[v] - x2[v], two * (x3[v] - x1[v])
                y[0, line, tile, v] = four * x0[v] - five * x2[v] + x4[v]
                y[1, line, tile, v], y[2, line, tile, v] = a + b, a - b
                y[3, line, tile, v], y[4, line, tile, v] = c + d, c - d
                y[5, line, tile, v] = four * x1[v] - five * x3[v] + x5[v]


def join_tiles(m: Any, nowhere: Any, y: Any) -> None:
    """y = Aᵀ m for the four pixels of every tile; results outside y are written to `nowhere`."""
    lines, tiles, values = m.shape[1:]
    size = y.shape[1]
    two, four, eight = m.dtype.type(2), m.dtype.type(4), m.dtype.type(8)
    for line in range(lines):
        for tile in range(tiles):
            i = TILE * tile
            y0 = y[line, i]
            y1 = y[line, i + 1] if i + 1 < size else nowhere
            y2 = y[line, i + 2] if i + 2 < size else nowhere
            y3 = y[line, i + 3] if i + 3 < size else nowhere
            for v in range(values):
                a, b = m[1, line, tile, v] + m[2, line, tile, v], m[1, line, tile, v] - m[2, line, tile, v]
                c, d = m[3, line, tile, v] + m[4, line, tile, v], m[3, line, tile, v] - m[4, line, tile, v]
                y0[v], y1[v] = m[0, line, tile, v] + a + c, b + two * d
                y2[v], y3[v] = a + four * c, b + eight * d + m[5, line, tile, v]
