"""Small random affine maps of images, which only the matching networks see, and only in training."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from vma.ranges import ShareBelowOne, Within, check_ranges

Images = Float[Tensor, "batch *image"]
Look = Callable[[Images], Images]  # what the matching networks see of an image


@dataclass(frozen=True)
class WarpSettings:
    """How far images are moved before the matching networks see them in training; not at all if all are zero.

    Each image gets its own map, whose numbers are uniform between minus and plus these values. The generative
    model sees every image unchanged.

    Attributes:
        rotation: Angle in radians.
        shear: Sideways movement as a share of the height.
        scale: Change of size, as a share of it.
        aspect: Change of the width relative to the height, as a share of it.
        shift: Movement as a share of half the width and half the height.
        turns: Turn the memory and all its targets by the same multiple of 90 degrees, and mirror them, at random.
            This makes characters that nobody has drawn.
    """

    rotation: Annotated[float, Within(0.0, 10.0)] = 0.0
    shear: Annotated[float, Within(0.0, 10.0)] = 0.0
    scale: ShareBelowOne = 0.0
    aspect: ShareBelowOne = 0.0
    shift: Annotated[float, Within(0.0, 10.0)] = 0.0
    turns: bool = False

    def __post_init__(self) -> None:
        check_ranges(self, "warps.")

    @property
    def sizes(self) -> tuple[float, ...]:
        """The numbers that describe a map, in the order in which `maps` uses them."""
        return self.rotation, self.shear, self.scale, self.aspect, self.shift, self.shift

    @property
    def any(self) -> bool:
        """Whether images are changed at all; false if every setting is zero."""
        return self.turns or max(self.sizes) > 0


def maps(
    settings: WarpSettings, count: int, like: Tensor, generator: torch.Generator | None = None
) -> Float[Tensor, "count 2 3"]:
    """A = R(rotation) · [[scale · aspect, shear], [0, scale / aspect]] and a shift, for each of `count` images."""
    unit = torch.rand((6, count), dtype=like.dtype, device=like.device, generator=generator) * 2 - 1
    rotation, shear, scale, aspect, right, down = (
        size * row for size, row in zip(settings.sizes, unit, strict=True)
    )
    across, upright = (1 + scale) * (1 + aspect), (1 + scale) / (1 + aspect)
    cos, sin = rotation.cos(), rotation.sin()
    first = torch.stack((cos * across, cos * shear - sin * upright, right), dim=1)
    second = torch.stack((sin * across, sin * shear + cos * upright, down), dim=1)
    return torch.stack((first, second), dim=1)


def warped(images: Images, settings: WarpSettings, generator: torch.Generator | None = None) -> Images:
    """Every image moved by its own map, with bilinear interpolation; there is no ink beyond the edge."""
    if max(settings.sizes) == 0:
        return images
    whole = images.unsqueeze(1) if images.ndim == 3 else images
    grid = affine_grid(maps(settings, len(images), images, generator), list(whole.shape), False)
    return grid_sample(whole, grid, align_corners=False).view(images.shape)


def turned(images: Images, turn: int) -> Images:
    """`images` turned by `turn` right angles (180 degrees if not square), and mirrored if `turn` is 4 or more."""
    images = images.flip(-1) if turn >= 4 else images
    square = images.shape[-1] == images.shape[-2]
    return images.rot90(turn % 4 if square else 2 * (turn % 2), (-2, -1)).contiguous()


def look(settings: WarpSettings, generator: torch.Generator | None = None) -> Look | None:
    """What the matching networks see in one update: one turn for all images, and a map for each."""
    if not settings.any:
        return None
    device = None if generator is None else generator.device
    turn = int(torch.randint(8, (), generator=generator, device=device)) if settings.turns else 0

    def seen(images: Images) -> Images:
        return warped(turned(images, turn) if turn else images, settings, generator)

    return seen


def strength(factor: float, *, turns: bool = False) -> WarpSettings:
    """The warps that helped on drawn characters, multiplied by `factor`."""
    return WarpSettings(0.2 * factor, 0.2 * factor, 0.15 * factor, 0.1 * factor, 0.15 * factor, turns)
