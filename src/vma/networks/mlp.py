"""The paper's networks for binarized MNIST: two hidden layers of 256 and 128 ReLU units."""

import math
from collections.abc import Sequence
from itertools import pairwise, zip_longest

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vma.config import ModelConfig
from vma.kernels.maps import Outputs
from vma.networks.features import ItemFeatures, Output, add_half, fill_bias, linear

# The last layers of the Gaussian heads start small: q(z|m,x) and p(z|m) begin near a standard normal.
HEAD_SCALE = 0.1


def perceptron(sizes: Sequence[int], scale: float = 1.0, shared: int = 0) -> nn.Sequential:
    """Fully-connected layers with ReLU between them; the last starts multiplied by `scale`.

    `shared` counts further inputs of every layer, which the caller adds.
    """
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes[:-1]):
        layers += [linear(inputs, outputs, shared=shared), nn.ReLU()]
    return nn.Sequential(*layers, linear(sizes[-2], sizes[-1], shared=shared, scale=scale))


class MLPItemDecoder(nn.Module):
    """p(x|m,z): z → 128 → 256 → x, where m is given to every layer, or to the first alone (`item_layers`).

    The paper does not say where m enters; if only the first layer sees it, a decoder cannot copy it (lab notes).
    """

    def __init__(self, config: ModelConfig, output: Output) -> None:
        super().__init__()
        self.config = config
        item, everywhere = math.prod(config.item_shape), config.item_layers == "all"
        first, *further = config.hidden[::-1]
        sizes = (first, *further, output.maps * config.height * config.width)
        self.decoder_z = linear(config.latent, first, shared=item)
        self.decoder_m = linear(item, first, shared=config.latent, bias=False)
        self.decoder = perceptron(sizes, shared=item if everywhere else 0)
        self.decoder_skips = nn.ModuleList(
            linear(item, outputs, shared=inputs, bias=False)
            for inputs, outputs in pairwise(sizes)
            if everywhere
        )
        fill_bias(self.decoder[-1], output.bias)

    def item_halves(self, m: Float[Tensor, "items *item"]) -> tuple[Tensor, ...]:
        """m's half of each of the decoder's layers that see it."""
        flat = m.flatten(1)
        return (self.decoder_m(flat), *(skip(flat) for skip in self.decoder_skips))

    def decode(
        self, z: Float[Tensor, "reads latent"], item: tuple[Tensor, ...], repeats: list[int] | None = None
    ) -> Outputs:
        """The output's maps from z and m's halves: one row per read, or one per item for `repeats` reads each."""
        h = add_half(self.decoder_z(z), item[0], repeats)
        for layer, half in zip_longest(list(self.decoder)[::2], item[1:]):
            h = layer(torch.relu(h))
            h = h if half is None else add_half(h, half, repeats)
        return h.unflatten(1, (-1, self.config.height, self.config.width))


class MLPNetworks(MLPItemDecoder):
    """q(z|m,x): [x, m] → 256 → 128 → 2|z|; p(z|m): m → 256 → 128 → 2|z|; and the decoder, p(x|m,z)."""

    def __init__(self, config: ModelConfig, output: Output) -> None:
        super().__init__(config, output)
        self.latent, self.image_shape, self.item_shape = config.latent, config.image_shape, config.item_shape
        numbers, item = math.prod(config.image_shape), math.prod(config.item_shape)
        self.prior = perceptron((item, *config.hidden, 2 * config.latent), HEAD_SCALE)
        self.encoder_x = linear(numbers, config.hidden[0], shared=item)
        self.encoder_m = linear(item, config.hidden[0], shared=numbers, bias=False)
        self.encoder = perceptron((*config.hidden, 2 * config.latent), HEAD_SCALE)
        for name in ("decoder_z", "decoder_m", "decoder", "decoder_skips"):
            self._modules[name] = self._modules.pop(
                name
            )  # last: a checkpoint identifies parameters by their order

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
        """p(z|m), and m's halves of the decoder's layers."""
        return ItemFeatures(self.prior(m.flatten(1)), self.item_halves(m))

    def encode(
        self, target: Float[Tensor, "pairs hidden"], item: Float[Tensor, "pairs hidden"]
    ) -> Float[Tensor, "pairs twice_latent"]:
        """Statistics of q(z|m,x)."""
        return self.encoder(torch.relu(target + item))
