"""The paper's networks for binarized MNIST: two hidden layers of 256 and 128 ReLU units."""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vma.config import ModelConfig
from vma.networks.features import ItemFeatures, Output, add_half
from vma.networks.initialisation import fill_bias, linear
from vma.networks.maps import Outputs

# The last layers of the Gaussian heads start small: q(z|m,x) and p(z|m) begin near a standard normal.
HEAD_SCALE = 0.1


def perceptron(sizes: Sequence[int], scale: float = 1.0) -> nn.Sequential:
    """Fully-connected layers with ReLU between them; the last is multiplied by `scale` at the start."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes[:-1]):
        layers += [linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers, linear(sizes[-2], sizes[-1], scale=scale))


class MLPNetworks(nn.Module):
    """q(z|m,x): [x, m] → 256 → 128 → 2|z|; p(z|m): m → 256 → 128 → 2|z|; p(x|m,z): [z, m] → 128 → 256 → x."""

    def __init__(self, config: ModelConfig, output: Output) -> None:
        super().__init__()
        self.config = config
        numbers, item = math.prod(config.image_shape), math.prod(config.item_shape)
        first, backwards = config.hidden[0], config.hidden[::-1]
        self.prior = perceptron((item, *config.hidden, 2 * config.latent), HEAD_SCALE)
        self.encoder_x = linear(numbers, first, shared=item)
        self.encoder_m = linear(item, first, shared=numbers, bias=False)
        self.encoder = perceptron((*config.hidden, 2 * config.latent), HEAD_SCALE)
        self.decoder_z = linear(config.latent, backwards[0], shared=item)
        self.decoder_m = linear(item, backwards[0], shared=config.latent, bias=False)
        self.decoder = perceptron((*backwards, output.maps * config.height * config.width))
        fill_bias(self.decoder[-1], output.bias)

    def embedding(self, shape: tuple[int, ...]) -> nn.Module:
        """h: flatten → 256 → 128 → |e|."""
        sizes = (math.prod(shape), *self.config.hidden, self.config.matching)
        return nn.Sequential(nn.Flatten(), perceptron(sizes))

    def targets(self, x: Float[Tensor, "batch *image"]) -> Float[Tensor, "batch hidden"]:
        """x's half of the encoder's first layer."""
        return self.encoder_x(x.flatten(1))

    def item_half(self, m: Float[Tensor, "items *item"]) -> Float[Tensor, "items hidden"]:
        """m's half of the encoder's first layer."""
        return self.encoder_m(m.flatten(1))

    def items(self, m: Float[Tensor, "items *item"]) -> ItemFeatures:
        """p(z|m), and m's half of the decoder's first layer."""
        flat = m.flatten(1)
        return ItemFeatures(self.prior(flat), (self.decoder_m(flat),))

    def encode(
        self, target: Float[Tensor, "pairs hidden"], item: Float[Tensor, "pairs hidden"]
    ) -> Float[Tensor, "pairs twice_latent"]:
        """Statistics of q(z|m,x)."""
        return self.encoder(torch.relu(target + item))

    def decode(
        self, z: Float[Tensor, "reads latent"], item: tuple[Tensor, ...], repeats: list[int] | None = None
    ) -> Outputs:
        """The output's maps, of m and z."""
        maps = self.decoder(torch.relu(add_half(self.decoder_z(z), item[0], repeats)))
        return maps.unflatten(1, (-1, self.config.height, self.config.width))
