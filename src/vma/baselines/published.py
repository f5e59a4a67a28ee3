"""The layers of GMN's public code: residual sections with PReLU, its recurrent cell, its sizes, for 28×28 pixels.

Kept from that code: convolutions without biases, weights divided by their norm in the same places, an inner
product times a learned strength between 0 and 10, a pseudo-input with its own key. Different here: as in all
models of this package, log σ is a layer's output bounded by ±6, whereas there σ is a softplus clipped at ±10; and
images are enlarged with pixel centres at ½. Here as there, a strength that starts below 0 has no gradient.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from vma.config import ModelConfig
from vma.networks.features import Output

SIDES = (28, 13, 6, 3)  # height and width of the maps, from the image down
MAPS = (1, 16, 32, 32)
KERNELS = (4, 3, 2)  # kernels of the layers between them, which have stride 2
BLOCKS = (3, 3, 2)  # kernels of the residual blocks, on the way down
FEATURES = MAPS[-1] * SIDES[-1] ** 2
SLOPE, CELL_SLOPE = 0.01, 0.02  # PReLU starts with slopes between −SLOPE and SLOPE
STRENGTH = (1e-10, 10.0)


def truncated_(weight: Tensor, fan_in: int, gain: float) -> None:
    """w ~ N(0, gain / fan_in), truncated at two standard deviations, in place."""
    deviation = math.sqrt(gain / fan_in)
    nn.init.trunc_normal_(weight, std=deviation, a=-2 * deviation, b=2 * deviation)


def affine(inputs: int, outputs: int, gain: float = 1.0) -> nn.Linear:
    """W v + b."""
    layer = nn.Linear(inputs, outputs)
    truncated_(layer.weight, inputs, gain)
    nn.init.zeros_(layer.bias)
    return layer


def prelu(units: int, slope: float = SLOPE) -> nn.PReLU:
    """max(y, 0) + p min(y, 0), with a slope p for each unit."""
    layer = nn.PReLU(units)
    nn.init.uniform_(layer.weight, -slope, slope)
    return layer


class NormedAffine(nn.Linear):
    """g W/‖W‖ v + b, with g learned."""

    def __init__(self, inputs: int, outputs: int, gain: float = 1.0) -> None:
        super().__init__(inputs, outputs)
        self.gain = nn.Parameter(torch.ones(()))
        truncated_(self.weight, inputs, gain)
        nn.init.zeros_(self.bias)

    def forward(self, v: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch outputs"]:
        """The layer's output."""
        return functional.linear(v, self.gain * self.weight / self.weight.norm(), self.bias)


class NormedConvolution(nn.Conv2d):
    """A convolution that keeps the size, by a kernel g W/‖W‖, with g learned."""

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__(inputs, outputs, kernel, bias=False)
        before = (kernel - 1) // 2  # an even kernel sees one more pixel after than before
        self.around = (before, kernel - 1 - before) * 2
        self.gain = nn.Parameter(torch.ones(()))
        truncated_(self.weight, inputs * kernel**2, 1.0)

    def forward(self, h: Float[Tensor, "batch inputs height width"]) -> Tensor:
        """Maps of h's size."""
        weight = self.gain * self.weight / self.weight.norm()
        return functional.conv2d(functional.pad(h, self.around), weight)


class Section(nn.Module):
    """shortcut(h) + PReLU(y + conv(y)), y = PReLU(layer(h)): half the size, or twice."""

    def __init__(self, inputs: int, outputs: int, kernel: int, block: int, down: bool) -> None:
        super().__init__()
        self.kernel, self.down = kernel, down
        kind = nn.Conv2d if down else nn.ConvTranspose2d
        self.layer = kind(inputs, outputs, kernel, stride=2, bias=False)
        truncated_(self.layer.weight, inputs * kernel**2, 2.0)
        self.block = NormedConvolution(outputs, outputs, block)
        self.shortcut = NormedConvolution(inputs, outputs, 1)
        self.first, self.last = prelu(outputs), prelu(outputs)

    def forward(self, h: Float[Tensor, "batch inputs height width"]) -> Tensor:
        """The section's maps."""
        y = self.first(self.layer(h))
        y = self.last(y + self.block(y))
        return y + self.resized(self.shortcut(h), y.shape[2:])

    def resized(self, h: Tensor, size: torch.Size) -> Tensor:
        """h at the size of the section's output, by averaging or linear interpolation."""
        if self.down:
            return functional.avg_pool2d(h, self.kernel, 2)
        return functional.interpolate(h, size=tuple(size), mode="bilinear", align_corners=False)


def features() -> nn.Module:
    """ψ: an image → three sections down → 288 numbers."""
    shapes = zip(MAPS[:-1], MAPS[1:], KERNELS, BLOCKS, strict=True)
    sections = [Section(inputs, outputs, kernel, block, True) for inputs, outputs, kernel, block in shapes]
    return nn.Sequential(nn.Unflatten(1, (1, SIDES[0])), *sections, nn.Flatten())


def decoder(config: ModelConfig, inputs: int, output: Output) -> nn.Module:
    """A vector → 288 → three sections up → a last 1×1 layer → the output's maps."""
    shapes = zip((32, 32, 16), (32, 16, 16), KERNELS[::-1], BLOCKS[::-1], strict=True)
    sections = [Section(few, many, kernel, block, False) for few, many, kernel, block in shapes]
    last = nn.Conv2d(16, output.maps, 1, bias=False)
    truncated_(last.weight, 16, 1.0)
    shape = (MAPS[-1], SIDES[-1], SIDES[-1])
    return nn.Sequential(affine(inputs, FEATURES), nn.Unflatten(1, shape), *sections, last)


class Query(nn.Module):
    """f = s W [query, h], with a strength s = w·h kept between 0 and 10: so ⟨g, f⟩ = s ⟨g, W [query, h]⟩."""

    def __init__(self, inputs: int, state: int, matching: int) -> None:
        super().__init__()
        self.state = state
        self.query = NormedAffine(inputs + state, matching)
        self.strength = NormedAffine(state, 1)

    def forward(self, v: Float[Tensor, "*batch inputs"]) -> Float[Tensor, "*batch matching"]:
        """The query times its strength."""
        return self.strength(v[..., -self.state :]).clamp(*STRENGTH) * self.query(v)


class Cell(nn.Module):
    """h ← u h + (1 − u) PReLU(W [i, s h]), with s and u the gates, σ(V [i, h]), and i = [r, h]."""

    def __init__(self, inputs: int, state: int) -> None:
        super().__init__()
        self.gates = affine(inputs + 2 * state, 2 * state)
        self.candidate = NormedAffine(inputs + 2 * state, state, 2.0)
        self.prelu = prelu(state, CELL_SLOPE)

    def forward(self, r: Float[Tensor, "batch inputs"], h: Float[Tensor, "batch state"]) -> Tensor:
        """The next state."""
        i = torch.cat((r, h), -1)
        reset, keep = torch.sigmoid(self.gates(torch.cat((i, h), -1))).chunk(2, -1)
        new = self.prelu(self.candidate(torch.cat((i, reset * h), -1)))
        return keep * h + (1 - keep) * new


def key_network(matching: int) -> nn.Module:
    """g: ψ → PReLU → the matching space."""
    return nn.Sequential(affine(FEATURES, matching, 2.0), prelu(matching))


def prior_head(state: int, latent: int) -> nn.Module:
    """[r, h] → |h| → statistics of p(z|X)."""
    return nn.Sequential(NormedAffine(FEATURES + state, state, 2.0), prelu(state), affine(state, 2 * latent))


def recognition_head(state: int, latent: int) -> nn.Module:
    """[ψ(x), r, h] → statistics of q(z|x,X), with no layer between."""
    inputs = 2 * FEATURES + state
    return affine(inputs, 2 * latent, 6.0 * inputs / (inputs + latent))
