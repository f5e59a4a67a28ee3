"""The paper's networks for Omniglot: six 3×3 layers down, transposed convolutions with skips from m up."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vma.config import ModelConfig
from vma.kernels import one_pass
from vma.kernels.compiled import applies
from vma.kernels.maps import Maps, Outputs, Rows, as_maps, as_rows, planes
from vma.networks.features import ItemFeatures, Output, add_half, fill_bias, linear
from vma.networks.layers import Finish, ToOneMap, convolution, transposed

# The last layers of the Gaussian heads start small: q(z|m,x) and p(z|m) begin near a standard normal.
HEAD_SCALE = 0.1


def scales(size: int) -> list[int]:
    """Sizes of the four scales: n, ⌈n/2⌉, ⌈n/4⌉, ⌈n/8⌉."""
    sizes = [size]
    for _ in range(3):
        sizes.append((sizes[-1] + 1) // 2)
    return sizes


class Pyramid(nn.Module):
    """Layers two to six: 3×3 convolutions, every second one of stride 2; the caller applies the first."""

    def __init__(self, maps: int, style: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList(convolution(maps, maps, stride) for stride in (2, 1, 2, 1, 2))
        self.finishes = nn.ModuleList(Finish(maps, style) for _ in range(6))

    def forward(self, y: Maps) -> list[Maps]:
        """The outputs of all six layers, where y is that of the first."""
        levels = [self.finishes[0](y)]
        for layer, finish in zip(self.layers, list(self.finishes)[1:], strict=True):
            levels.append(finish(layer(levels[-1]), levels[-1]))
        return levels


def activation(style: str) -> nn.Module:
    """ReLU, or SiLU for `modern`: on normalised maps ReLU units die early, and z is then never used."""
    return nn.SiLU() if style == "modern" else nn.ReLU()


def head(config: ModelConfig, outputs: int, scale: float = 1.0) -> nn.Sequential:
    """The end of the pyramid: flatten, one hidden fully-connected layer, `outputs` units."""
    hidden = config.hidden[0]
    last = linear(hidden, outputs, scale=scale)
    return nn.Sequential(nn.Flatten(), linear(flat_size(config), hidden), activation(config.style), last)


class Embedding(nn.Module):
    """h: image → pyramid → hidden layer → matching space."""

    def __init__(self, config: ModelConfig, outputs: int) -> None:
        super().__init__()
        self.first = convolution(config.channels, config.maps)
        self.pyramid = Pyramid(config.maps, config.style)
        self.head = head(config, outputs)

    def forward(self, image: Float[Tensor, "batch *image"]) -> Float[Tensor, "batch matching"]:
        """e = h(image)."""
        return self.head(self.pyramid(self.first(planes(image)))[-1])


def flat_size(config: ModelConfig) -> int:
    """Number of units of the pyramid's last level."""
    return config.maps * scales(config.height)[-1] * scales(config.width)[-1]


def upwards(maps: int, outputs: int, extras: list[tuple[int, int]], bias: bool = True) -> list[nn.Module]:
    """One half, h's or m's, of the six layers: up, keep, up, keep, up, and keep with the output's maps."""
    layers: list[nn.Module] = []
    for extra in extras:
        layers += [transposed(maps, extra, bias=bias), convolution(maps, maps, halves=2, bias=bias)]
    return [*layers[:-1], convolution(maps, outputs, halves=2, bias=bias)]


class Decoder(nn.Module):
    """p(x|m,z): [z, v_m] → hidden → smallest scale, then six layers up on [h, f_m], where f_m is m's pyramid."""

    def __init__(self, config: ModelConfig, output: Output) -> None:
        super().__init__()
        rows, columns = scales(config.height), scales(config.width)
        maps, hidden, latent = config.maps, config.hidden[0], config.latent
        self.smallest = (maps, rows[-1], columns[-1])
        self.hidden_z = linear(latent, hidden, shared=latent)
        self.hidden_m = linear(latent, hidden, shared=latent, bias=False)
        self.expand = linear(hidden, flat_size(config))
        self.activation = activation(config.style)
        ends = list(zip(rows[:-1], columns[:-1], rows[1:], columns[1:], strict=True))[::-1]
        extras = [(up_r - 2 * r + 1, up_c - 2 * c + 1) for up_r, up_c, r, c in ends]
        self.layers_h = nn.ModuleList(upwards(maps, output.maps, extras, bias=False))
        self.layers_m = nn.ModuleList(upwards(maps, output.maps, extras))
        self.finishes = nn.ModuleList(Finish(maps, config.style) for _ in range(5))
        fill_bias(self.layers_m[-1], output.bias)

    def item(self, context: Float[Tensor, "items latent"], levels: list[Maps]) -> tuple[Tensor, ...]:
        """m's half of every layer, with its bias: of the hidden one, from v_m, then of the six, smallest first."""
        sides = [as_rows(layer(level)) for layer, level in zip(self.layers_m, levels[::-1], strict=True)]
        return (self.hidden_m(context), *sides)

    def forward(
        self, z: Float[Tensor, "reads latent"], item: tuple[Tensor, ...], repeats: list[int] | None = None
    ) -> Outputs:
        """The output; `item` comes from `item()`, one row per read, or per item for `repeats` reads each."""
        hidden = self.activation(add_half(self.hidden_z(z), item[0], repeats))
        h = self.activation(self.expand(hidden)).unflatten(1, self.smallest)
        h = h.contiguous(memory_format=torch.channels_last)
        (*layers, _, _), (*finishes, _) = self.layers_h, self.finishes
        for layer, side, finish in zip(layers, item[1:-2], finishes, strict=True):
            h = finish(add_half(layer(h), as_maps(side), repeats), h)
        return add_half(self.largest_scale(h, item[-2], repeats), as_maps(item[-1]), repeats)

    def largest_scale(self, h: Maps, half: one_pass.Halves, repeats: list[int] | None) -> Outputs:
        """h's half of the last two layers, and with it the output."""
        up, last, finish = self.layers_h[-2], self.layers_h[-1], self.finishes[-1]
        if repeats is not None and isinstance(last, ToOneMap) and finish.norm is None and applies(h):
            return one_pass.largest_scale(up, last, h, half, repeats)
        return last(finish(add_half(up(h), as_maps(half), repeats), h))


class ConvolutionalNetworks(nn.Module):
    """The networks for x, m and z; p(z|m) and p(x|m,z) share the pyramid of m.

    A learned item is shaped like an image: so the same pyramid gives skips at every scale, and one can look at
    what has been learned.
    """

    def __init__(self, config: ModelConfig, output: Output) -> None:
        super().__init__()
        self.config = config
        self.latent, self.image_shape, self.item_shape = config.latent, config.image_shape, config.item_shape
        maps, latent, channels = config.maps, config.latent, config.channels
        self.item_first = convolution(channels, maps)
        self.item_pyramid = Pyramid(maps, config.style)
        self.prior = head(config, 2 * latent, HEAD_SCALE)
        self.context = head(config, latent)
        self.encoder_x = convolution(channels, maps, halves=2)
        self.encoder_m = convolution(channels, maps, halves=2, bias=False)
        self.encoder_pyramid = Pyramid(maps, config.style)
        self.encoder_head = head(config, 2 * latent, HEAD_SCALE)
        self.decoder = Decoder(config, output)

    def embedding(self, shape: tuple[int, ...]) -> nn.Module:
        """h: image → matching space; `shape` is always the shape of an image."""
        return Embedding(self.config, self.config.matching)

    def targets(self, x: Float[Tensor, "batch *image"]) -> Rows:
        """x's half of the encoder's first layer."""
        return as_rows(self.encoder_x(planes(x)))

    def item_half(self, m: Float[Tensor, "items *image"]) -> Rows:
        """m's half of the encoder's first layer."""
        return as_rows(self.encoder_m(planes(m)))

    def items(self, m: Float[Tensor, "items *image"]) -> ItemFeatures:
        """p(z|m), and m's halves of the decoder's layers."""
        levels = self.item_pyramid(self.item_first(planes(m)))
        return ItemFeatures(self.prior(levels[-1]), self.decoder.item(self.context(levels[-1]), levels))

    def encode(self, target: Rows, item: Rows) -> Float[Tensor, "pairs twice_latent"]:
        """Statistics of q(z|m,x)."""
        return self.encoder_head(self.encoder_pyramid(as_maps(target + item))[-1])

    def decode(
        self, z: Float[Tensor, "reads latent"], item: tuple[Tensor, ...], repeats: list[int] | None = None
    ) -> Outputs:
        """The output's maps, from m and z."""
        return self.decoder(z, item, repeats)
