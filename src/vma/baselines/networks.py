"""Parts of the families in `vma.networks`: q(z|x) and p(x|z) without m, and p(x|m,z) by itself."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vma.config import ModelConfig
from vma.kernels.maps import Maps, Outputs, planes
from vma.networks.convolutional import (
    Decoder,
    Embedding,
    Pyramid,
    activation,
    flat_size,
    head,
    scales,
    upwards,
)
from vma.networks.features import Output, fill_bias, linear
from vma.networks.layers import Finish, convolution
from vma.networks.mlp import MLPItemDecoder, perceptron


def encoder(config: ModelConfig, shape: tuple[int, ...], outputs: int, scale: float = 1.0) -> nn.Module:
    """Inputs of `shape` → the family's layers → `outputs` units, with the last layer multiplied by `scale`."""
    if config.family == "mlp":
        return nn.Sequential(nn.Flatten(), perceptron((math.prod(shape), *config.hidden, outputs), scale))
    embedding = Embedding(config, outputs)
    embedding.head = head(config, outputs, scale)
    return embedding


def features(config: ModelConfig) -> tuple[nn.Module, int]:
    """ψ: an image → the family's layers up to the last hidden one, as a vector; also returns its size."""
    if config.family == "convolutional":
        return ConvolutionalFeatures(config), flat_size(config)
    layers = perceptron((math.prod(config.image_shape), *config.hidden))
    return nn.Sequential(nn.Flatten(), layers, nn.ReLU()), config.hidden[-1]


def decoder(config: ModelConfig, inputs: int, output: Output) -> nn.Module:
    """A vector of `inputs` units → the family's layers in reverse → the output's maps."""
    if config.family == "convolutional":
        return ConvolutionalDecoder(config, inputs, output)
    size = (output.maps, config.height, config.width)
    layers = perceptron((inputs, *config.hidden[::-1], math.prod(size)))
    fill_bias(layers[-1], output.bias)
    return nn.Sequential(layers, nn.Unflatten(1, size))


class ConvolutionalFeatures(nn.Module):
    """The last level of an image's pyramid, flattened."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.first = convolution(config.channels, config.maps)
        self.pyramid = Pyramid(config.maps, config.style)

    def forward(self, image: Float[Tensor, "batch *image"]) -> Float[Tensor, "batch features"]:
        """ψ(image)."""
        return self.pyramid(self.first(planes(image)))[-1].flatten(1)


class ConvolutionalDecoder(nn.Module):
    """v → hidden → smallest scale, then six layers up, as in `vma.networks.convolutional.Decoder`."""

    def __init__(self, config: ModelConfig, inputs: int, output: Output) -> None:
        super().__init__()
        rows, columns = scales(config.height)[::-1], scales(config.width)[::-1]
        self.smallest = (config.maps, rows[0], columns[0])
        self.hidden = linear(inputs, config.hidden[0])
        self.expand = linear(config.hidden[0], flat_size(config))
        self.activation = activation(config.style)
        extras = [(rows[i + 1] - 2 * rows[i] + 1, columns[i + 1] - 2 * columns[i] + 1) for i in range(3)]
        self.layers = nn.ModuleList(upwards(config.maps, output.maps, extras))
        for layer in self.layers:  # their initialisation counted m's half among the inputs
            multiply_weight_(layer, math.sqrt(2.0))
        self.finishes = nn.ModuleList(Finish(config.maps, config.style) for _ in range(5))
        fill_bias(self.layers[-1], output.bias)

    def forward(self, v: Float[Tensor, "reads inputs"]) -> Outputs:
        """The output's maps."""
        hidden = self.activation(self.hidden(v))
        h: Maps = self.activation(self.expand(hidden)).unflatten(1, self.smallest)
        h = h.contiguous(memory_format=torch.channels_last)
        *layers, last = self.layers
        for layer, finish in zip(layers, self.finishes, strict=True):
            h = finish(layer(h), h)
        return last(h)


class ConvolutionalItemDecoder(nn.Module):
    """p(x|m,z) of `ConvolutionalNetworks`, without that class's p(z|m) and q(z|m,x)."""

    def __init__(self, config: ModelConfig, output: Output) -> None:
        super().__init__()
        self.item_first = convolution(config.channels, config.maps)
        self.item_pyramid = Pyramid(config.maps, config.style)
        self.context = head(config, config.latent)
        self.decoder = Decoder(config, output)

    def item_halves(self, m: Float[Tensor, "items *image"]) -> tuple[Tensor, ...]:
        """m's half of every layer."""
        levels = self.item_pyramid(self.item_first(planes(m)))
        return self.decoder.item(self.context(levels[-1]), levels)

    def decode(self, z: Float[Tensor, "reads latent"], item: tuple[Tensor, ...]) -> Outputs:
        """The output's maps from z and m's halves, with one row per read."""
        return self.decoder(z, item)


def item_decoder(config: ModelConfig, output: Output) -> ConvolutionalItemDecoder | MLPItemDecoder:
    """p(x|m,z) of the configured family."""
    family = MLPItemDecoder if config.family == "mlp" else ConvolutionalItemDecoder
    return family(config, output)


def multiply_weight_(layer: nn.Module, factor: float) -> None:
    """w ← factor · w, in place."""
    assert isinstance(layer.weight, nn.Parameter)
    with torch.no_grad():
        layer.weight.mul_(factor)
