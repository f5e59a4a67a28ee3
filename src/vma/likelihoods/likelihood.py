"""What a model needs of p(x|m,z): an end for its decoder, log-probabilities, and draws."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from vma.errors import InputError
from vma.networks.features import Output

Features = Float[Tensor, "reads outputs height width"]  # what a decoder ends in
Images = Float[Tensor, "batch *image"]


@dataclass(frozen=True)
class Drawing:
    """Images drawn pixel by pixel.

    >>> drawn = vma.likelihoods.Bernoulli(ink=0.1).draw(torch.zeros(1, 1, 4, 4), torch.rand(1, 4, 4))
    >>> isinstance(drawn, vma.likelihoods.Drawing), drawn.means.unique()
    (True, tensor([0.5000]))

    Attributes:
        images: x.
        means: The mean of every pixel, given the pixels before it if the likelihood looks at any; for black and
            white images, the probability of ink.
        shown: What a figure should show: the means if pixels are independent, otherwise the images.
    """

    images: Images
    means: Images
    shown: Images


def join(drawn: Sequence[Drawing]) -> Drawing:
    """All of these drawings in one.

    >>> likelihood = vma.likelihoods.Bernoulli(ink=0.1)
    >>> one = likelihood.draw(torch.zeros(1, 1, 4, 4), torch.rand(1, 4, 4))
    >>> vma.likelihoods.join([one, one]).images.shape
    torch.Size([2, 4, 4])
    """
    images, means, shown = (torch.cat([getattr(d, f) for d in drawn]) for f in ("images", "means", "shown"))
    return Drawing(images, means, shown)


class Likelihood(nn.Module, ABC):
    """p(x|m,z), given the feature maps that a decoder has made of m and z.

    `targets` computes everything that depends on x alone, once per target; `log_prob` combines it with the features
    of every read.

    >>> likelihood = vma.likelihoods.Bernoulli(ink=0.1)
    >>> x, log_odds = torch.ones(2, 4, 4), torch.zeros(3, 1, 4, 4)
    >>> rows = torch.tensor([0, 0, 1])  # the target of each of three reads
    >>> likelihood.log_prob(likelihood.targets(x), rows, log_odds) / math.log(2)
    tensor([-16., -16., -16.])

    Attributes:
        output: How the decoder must end.
        channels: Channels of an image: 1 if images are [height, width], else the size of an image's first axis.
    """

    output: Output
    channels: int = 1

    @abstractmethod
    def check(self, name: str, images: Images) -> None:
        """Refuse images to which this likelihood gives no probability; the error calls them `name`."""

    @abstractmethod
    def targets(self, x: Images, blind: Bool[Tensor, "batch"] | None = None) -> tuple[Tensor, ...]:
        """What is needed of x, with one row per target.

        Args:
            x: Targets.
            blind: In training, targets whose pixels are explained without the pixels before them; no effect if
                pixels are independent.
        """

    @abstractmethod
    def log_prob(
        self, targets: tuple[Tensor, ...], rows: Int[Tensor, "reads"], features: Features
    ) -> Float[Tensor, "reads"]:
        """log p(x|m,z) of every read, where `rows` says which row of `targets` belongs to it."""

    @abstractmethod
    def draw(
        self, features: Features, uniforms: Float[Tensor, "reads *image"], temperature: float = 1.0
    ) -> Drawing:
        """x ~ p(x|m,z) by the inverse distribution function at `uniforms`, one number in [0, 1) per pixel.

        The `temperature` divides the log-odds of pixels that depend on others; it leaves independent pixels as
        they are.
        """

    def typical(self, features: Features) -> Drawing:
        """One drawing that stands for all of p(x|m,z), the same each time: every pixel at its median."""
        shape = features.shape[2:] if self.channels == 1 else (self.channels, *features.shape[2:])
        return self.draw(features, features.new_full((len(features), *shape), 0.5))


def blind_targets(
    count: int, share: float, device: torch.device, generator: torch.Generator | None
) -> Bool[Tensor, "batch"] | None:
    """Each of `count` targets is blind with probability `share`; None if that is 0.

    >>> vma.likelihoods.blind_targets(3, 1.0, torch.device("cpu"), None)
    tensor([True, True, True])
    """
    if not 0 <= share <= 1:
        raise InputError(f"blind is a share of the targets, from 0 to 1, not {share}.")
    return torch.rand(count, device=device, generator=generator) < share if share else None
