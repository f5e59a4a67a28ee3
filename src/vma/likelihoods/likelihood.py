"""What a model asks of p(x|m,z): an end for its decoder, log-probabilities, and draws."""

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
    """Images that were drawn, pixel by pixel.

    Attributes:
        images: x.
        means: The mean of every pixel given those before it, if it looks at any; of black and white ones, the
            probability of ink.
        shown: What a figure shows: the means where pixels are independent, else the images.
    """

    images: Images
    means: Images
    shown: Images


def join(drawn: Sequence[Drawing]) -> Drawing:
    """All of them, in one."""
    images, means, shown = (torch.cat([getattr(d, f) for d in drawn]) for f in ("images", "means", "shown"))
    return Drawing(images, means, shown)


class Likelihood(nn.Module, ABC):
    """p(x|m,z), given feature maps of m and z that a decoder has made.

    Everything that depends on x alone is computed by `targets`, once per target; `log_prob` joins it with the
    features of every read.

    Attributes:
        output: What the decoder must end in.
        channels: Of an image: 1 where images are [height, width], else the first axis of an image.
    """

    output: Output
    channels: int = 1

    @abstractmethod
    def check(self, name: str, images: Images) -> None:
        """Refuse images that this likelihood gives no probability, in a sentence that names them `name`."""

    @abstractmethod
    def targets(self, x: Images, blind: Bool[Tensor, "batch"] | None = None) -> tuple[Tensor, ...]:
        """What is needed of x, one row per target.

        Args:
            x: Targets.
            blind: Targets whose pixels are to be explained without the pixels before them, in training; means
                nothing where pixels are independent.
        """

    @abstractmethod
    def log_prob(
        self, targets: tuple[Tensor, ...], rows: Int[Tensor, "reads"], features: Features
    ) -> Float[Tensor, "reads"]:
        """log p(x|m,z) of every read, with `rows` the row of `targets` that each is of."""

    @abstractmethod
    def draw(
        self, features: Features, uniforms: Float[Tensor, "reads *image"], temperature: float = 1.0
    ) -> Drawing:
        """x ~ p(x|m,z) by the inverse distribution function at `uniforms`, one number in [0, 1) per pixel.

        The `temperature` divides the log-odds of a pixel that looks at others; independent pixels are drawn as
        they are.
        """

    def most_probable(self, features: Features) -> Drawing:
        """Every pixel the median given those before it: of ink and no ink, the more probable."""
        shape = features.shape[2:] if self.channels == 1 else (self.channels, *features.shape[2:])
        return self.draw(features, features.new_full((len(features), *shape), 0.5))


def blind_targets(
    count: int, share: float, device: torch.device, generator: torch.Generator | None
) -> Bool[Tensor, "batch"] | None:
    """Each of `count` targets with the probability `share`; None where that is 0."""
    if not 0 <= share <= 1:
        raise InputError(f"blind is a share of the targets, from 0 to 1, not {share}.")
    return torch.rand(count, device=device, generator=generator) < share if share else None
