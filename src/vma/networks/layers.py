"""3×3 convolutions and what follows them, on maps in the layout `channels_last`.

In this layout, where a pixel's values lie together, a CPU convolves fastest. Where torch's own kernel is slow in
it, the same sum is written as a matrix product; docs/lab-notes has the times.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from vma.kernels.maps import TAPS, Image, Maps, as_maps, as_rows
from vma.kernels.winograd import Same
from vma.latents import full_precision
from vma.networks.features import he_

VECTORS = 16  # TAPS, rounded up to whole vectors of a processor


class FromOneMap(nn.Conv2d):
    """A convolution of an image: y = P w + b, where a row of P holds the nine pixels around a pixel."""

    def forward(self, image: Image) -> Maps:
        """Maps of the image's size."""
        patches = functional.unfold(image, 3, padding=1).mT
        # Contiguous, since the gradient of a transposed matrix would multiply in the slow order.
        kernel = self.weight.flatten(1).T.contiguous().expand(len(image), -1, -1)
        rows = torch.bmm(patches, kernel) if self.bias is None else torch.baddbmm(self.bias, patches, kernel)
        return as_maps(rows.unflatten(1, image.shape[2:]))


class ToOneMap(nn.Conv2d):
    """A convolution to one map: y = Σ_t shift_t(w_t · h), with all nine products w_t · h in a single one."""

    def forward(self, h: Maps) -> Image:
        """One map of h's size."""
        kernel = self.weight.reshape(h.shape[1], TAPS).flip(1).T.contiguous()
        y = folded(kernel, h) if torch.is_grad_enabled() else shifted(kernel, h)
        return y if self.bias is None else y + self.bias


def folded(kernel: Float[Tensor, "taps maps"], h: Maps) -> Image:
    """Σ_t shift_t(w_t · h) by a matrix product and a fold."""
    batch, maps, height, width = h.shape
    products = kernel @ as_rows(h).reshape(-1, maps).T
    planes = products.view(TAPS, batch, height * width).transpose(0, 1)
    return functional.fold(planes, (height, width), 3, padding=1)


def shifted(kernel: Float[Tensor, "taps maps"], h: Maps) -> Image:
    """Σ_t shift_t(w_t · h) by a 1×1 convolution and nine sums in place: faster than `folded`, but no gradient."""
    batch, _, height, width = h.shape
    whole_vectors = functional.pad(kernel, (0, 0, 0, VECTORS - TAPS))
    products = functional.conv2d(h, whole_vectors[:, :, None, None])
    y = h.new_zeros(batch, height + 2, width + 2)
    for tap in range(TAPS):
        row, column = divmod(tap, 3)
        y[:, row : row + height, column : column + width] += products[:, tap]
    return y[:, None, 1:-1, 1:-1]


class Up(nn.ConvTranspose2d):
    """A transposed convolution that adds its bias afterwards; inside it, torch takes twice the time."""

    def forward(self, h: Maps, output_size: list[int] | None = None) -> Maps:
        """Maps of twice the size, or of twice the size less one."""
        y = functional.conv_transpose2d(h, self.weight, None, 2, 1, self.output_padding)
        return y if self.bias is None else y.add_(self.bias.view(-1, 1, 1))


Pixels = Float[Tensor, "batch pixels maps"]
PerMap = Float[Tensor, "batch maps"]


def over_groups(means: PerMap, groups: int) -> PerMap:
    """For each map, the mean over the maps of its group."""
    grouped = means.unflatten(1, (groups, -1))
    return grouped.mean(2, keepdim=True).expand_as(grouped).flatten(1)


class Normalise(torch.autograd.Function):
    """y = γ ŷ + β, ŷ = (x − μ) / σ, and ∂x = (γ∂y − mean(γ∂y) − ŷ mean(γ∂y ŷ)) / σ, with means over a group.

    Both directions are multiply-adds, whose factors are one number per image and map.
    """

    @staticmethod
    def forward(ctx: Any, x: Pixels, weight: Tensor, bias: Tensor, groups: int, eps: float) -> Pixels:
        """y."""
        mean = over_groups(x.mean(1), groups)
        square = over_groups(x.square().mean(1), groups)
        inverse = ((square - mean.square()).clamp(min=0) + eps).rsqrt()
        ctx.groups = groups
        ctx.save_for_backward(x, weight, mean, inverse)
        scale = weight * inverse
        return torch.addcmul((bias - mean * scale).unsqueeze(1), x, scale.unsqueeze(1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """∂x, ∂γ and ∂β."""
        (gradient,), (x, weight, mean, inverse) = gradients, ctx.saved_tensors
        of_bias, along_x = gradient.mean(1), (gradient * x).mean(1)
        along = (along_x - mean * of_bias) * inverse
        slope = -inverse.square() * over_groups(weight * along, ctx.groups)
        shift = -inverse * over_groups(weight * of_bias, ctx.groups) - slope * mean
        of_x = torch.addcmul(shift.unsqueeze(1), x, slope.unsqueeze(1))
        of_x.addcmul_(gradient, (weight * inverse).unsqueeze(1))
        pixels = x.shape[1]
        return of_x, pixels * along.sum(0), pixels * of_bias.sum(0), None, None


class Norm(nn.GroupNorm):
    """(y − μ) / σ · γ + β, with μ and σ over the pixels and maps of a group.

    torch's own takes more than twice the time in this layout if groups have few maps.
    """

    def forward(self, y: Maps) -> Maps:
        """y, normalised."""
        rows = as_rows(full_precision(y))
        found = Normalise.apply(rows.flatten(1, 2), self.weight, self.bias, self.num_groups, self.eps)
        return as_maps(found.view(rows.shape))


def start(layer: nn.Conv2d | nn.ConvTranspose2d) -> None:
    """Start with a bias of zero, and a kernel laid out in memory as its gradient will be."""
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)


def kind(inputs: int, outputs: int, stride: int) -> type[nn.Conv2d]:
    """The class of a convolution: torch's own, or a faster one of ours."""
    if stride > 1:
        return nn.Conv2d
    if inputs == 1:
        return FromOneMap
    return ToOneMap if outputs == 1 else Same


def convolution(
    inputs: int, outputs: int, stride: int = 1, *, halves: int = 1, bias: bool = True
) -> nn.Conv2d:
    """A 3×3 convolution that keeps the size, or halves it (rounding up)."""
    layer = kind(inputs, outputs, stride)(inputs, outputs, 3, stride, padding=1, bias=bias)
    he_(layer.weight, halves * inputs * TAPS)
    start(layer)
    return layer


def transposed(maps: int, extra: tuple[int, int], *, bias: bool = True) -> nn.ConvTranspose2d:
    """A 3×3 transposed convolution of stride 2 on one half of 2 × `maps` maps: n → 2n − 1 + extra."""
    layer = Up(maps, maps, 3, 2, padding=1, output_padding=extra, bias=bias)
    # With stride 2, an output receives 9/4 of the kernel's nine products with a map, on average.
    he_(layer.weight, 2 * maps * TAPS / 4)
    start(layer)
    return layer


def relu(y: Maps) -> Maps:
    """max(y, 0), in place unless y is a view, whose base autograd would then copy."""
    return torch.relu(y) if y._is_view() and torch.is_grad_enabled() else torch.relu_(y)


class Finish(nn.Module):
    """What follows a convolution: ReLU (`paper`), or GroupNorm, a residual sum and SiLU (`modern`)."""

    def __init__(self, maps: int, style: str) -> None:
        super().__init__()
        self.norm = Norm(8, maps) if style == "modern" else None

    def forward(self, y: Maps, h: Maps | None = None) -> Maps:
        """ReLU(y), or SiLU(norm(y) + h) if the layer's input h has y's shape (else without h); y is overwritten."""
        if self.norm is None:
            return relu(y)
        y = self.norm(y)
        return functional.silu(y if h is None or h.shape != y.shape else y + h)
