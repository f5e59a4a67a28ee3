"""Drawing pixel by pixel while computing only what changes.

A layer of width k lets a pixel see ⌊k/2⌋ columns to the right in the rows above it. With s = ⌊k/2⌋ + 1 for the
widest layer, the pixels of equal column + s · row depend only on pixels drawn before: they are drawn together, so
an image takes width + s · (height − 1) steps instead of one step per pixel.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import silu

CPU = torch.device("cpu")
# The pixels of a step and, for each layer, the neighbours that they look at.
Step = tuple[Int[Tensor, "_"], tuple[Int[Tensor, "_"], ...]]


@dataclass(frozen=True)
class Wavefront:
    """The order in which the pixels of an image are drawn, and the places of each pixel's neighbours.

    Images get margins of zeros and are flattened, so that a neighbour is always at a fixed distance.

    Attributes:
        cells: Number of pixels, including the margins.
        order: All pixels, without margins, in drawing order.
        steps: For each step, its pixels (with margins) and, for each layer, the neighbours of all of them.
    """

    cells: int
    order: Int[Tensor, "all_pixels"]
    steps: tuple[Step, ...]

    @staticmethod
    @cache
    def of(sizes: tuple[int, ...], height: int, width: int, device: torch.device = CPU) -> "Wavefront":
        """The order for layers of these `sizes`, where a pixel does not see itself in the first."""
        margin = max(sizes) // 2
        stride = width + 2 * margin
        row, column = (index.flatten() for index in torch.meshgrid(
            torch.arange(height), torch.arange(width), indexing="ij"
        ))  # fmt: skip
        when = column + (margin + 1) * row
        order = when.argsort(stable=True)
        cell = ((row + margin) * stride + column + margin)[order]
        around = [distances(size, stride, itself=layer > 0) for layer, size in enumerate(sizes)]
        steps = tuple(
            (pixels.to(device), tuple((pixels[:, None] + each).flatten().to(device) for each in around))
            for pixels in cell.split(when.bincount().tolist())
            if len(pixels)
        )
        return Wavefront((height + margin) * stride, order.to(device), steps)

    def draw(
        self,
        layers: Sequence[tuple[Float[Tensor, "_ maps"], Float[Tensor, "maps"]]],
        logits: Callable[[Tensor, Tensor], Tensor],
        h: Float[Tensor, "samples all_pixels maps"],
        uniforms: Float[Tensor, "samples all_pixels"],
    ) -> tuple[Float[Tensor, "samples all_pixels"], Float[Tensor, "samples all_pixels"]]:
        """Pixels x_i = [u_i < p_i] and their probabilities p_i.

        Args:
            layers: Weights [neighbours · inputs, maps] and bias of each causal layer.
            logits: Log-odds of ink, from rows of h and of the context.
            h: The decoder's output at every pixel.
            uniforms: u.
        """
        samples, _, maps = h.shape
        h, u = h.index_select(1, self.order), uniforms.index_select(1, self.order)
        seen = [h.new_zeros(samples, self.cells, inputs) for inputs in (1, *[maps] * (len(layers) - 1))]
        ink, start = torch.empty_like(u), 0
        probabilities = torch.empty_like(u)
        for pixels, near in self.steps:
            part = slice(start, start := start + len(pixels))
            c = context(layers, seen, pixels, near)
            p = logits(h[:, part], c).sigmoid()
            probabilities[:, part] = p
            ink[:, part] = u[:, part] < p
            seen[0].index_copy_(1, pixels, ink[:, part, None])
        back = self.order.argsort()
        return ink.index_select(1, back), probabilities.index_select(1, back)


def context(
    layers: Sequence[tuple[Tensor, Tensor]],
    seen: Sequence[Float[Tensor, "samples cells _"]],
    pixels: Int[Tensor, "pixels"],
    near: Sequence[Int[Tensor, "_"]],
) -> Float[Tensor, "samples pixels maps"]:
    """c of `pixels`; the inputs of the layers above the first are written into `seen`."""
    shape = (len(seen[0]), len(pixels), layers[0][0].shape[1])
    c: Tensor | None = None
    for (weight, bias), cells, neighbours in zip(layers, seen, near, strict=True):
        if c is not None:
            cells.index_copy_(1, pixels, silu(c))
        rows = cells.index_select(1, neighbours).view(-1, len(weight))
        new = torch.addmm(bias, rows, weight).view(shape)
        c = new if c is None else c + new
    assert c is not None
    return c


def distances(size: int, stride: int, *, itself: bool) -> Int[Tensor, "neighbours"]:
    """Distances in a flattened image from a pixel to its neighbours, row by row."""
    half = size // 2
    above = [-row * stride + column for row in range(half, 0, -1) for column in range(-half, half + 1)]
    return torch.tensor([*above, *range(-half, 1 if itself else 0)])
