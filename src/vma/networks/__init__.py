"""The networks behind the distributions: they map tensors to tensors and know nothing of probability."""

from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from vma.config import ModelConfig
from vma.networks.features import ItemFeatures, Output
from vma.parts import FAMILIES

__all__ = ["ItemFeatures", "Networks", "Output", "build_networks"]


@runtime_checkable
class Networks(Protocol):
    """What the model needs of a family of networks, an `nn.Module`; every method takes and returns a batch.

    Attributes:
        latent: |z|.
        image_shape: Shape of a target.
        item_shape: Shape of a memory item.
    """

    latent: int
    image_shape: tuple[int, ...]
    item_shape: tuple[int, ...]

    def embedding(self, shape: tuple[int, ...]) -> nn.Module:
        """A new network h from inputs of `shape` into the matching space."""

    def targets(self, x: Tensor) -> Tensor:
        """What the encoder needs of x alone; called once per target."""

    def item_half(self, m: Tensor) -> Tensor:
        """What the encoder needs of m alone; called once per unique item read."""

    def items(self, m: Tensor) -> ItemFeatures:
        """p(z|m), and what the decoder needs of m alone; called once per unique item read."""

    def encode(self, target: Tensor, item: Tensor) -> Tensor:
        """Statistics of q(z|m,x); called once per unique pair of target and item."""

    def decode(self, z: Tensor, item: tuple[Tensor, ...], repeats: list[int] | None = None) -> Tensor:
        """The output from z and m; called once per sample. Row i of `item` serves `repeats[i]` samples, or one."""


def build_networks(config: ModelConfig, output: Output) -> Networks:
    """The networks of the configured family, with a decoder that ends in `output`.

    >>> config, output = vma.ModelConfig(maps=8), vma.networks.Output(1, (0.0,))
    >>> networks = vma.networks.build_networks(config, output)
    >>> isinstance(networks, vma.networks.Networks)
    True
    >>> features = networks.items(torch.zeros(3, 26, 26))  # of three items, each computed once
    >>> isinstance(features, vma.networks.ItemFeatures), features.prior.shape[0]
    (True, 3)
    """
    return FAMILIES[config.family](config, output)
