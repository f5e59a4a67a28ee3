"""Checks of what a user hands in: one clear sentence instead of a traceback from deep inside torch."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vma.errors import InputError
from vma.ranges import MOST, shown

COLOURS = 3  # channels of a colour image
ENORMOUS = {"seed": 2**62, "threads": 2**10}  # the largest values of numbers whose limit is not `MOST`


def as_images(name: str, images: Any, dtype: torch.dtype | None = None) -> Tensor:
    """`images` as floats [n, height, width] or [n, 3, height, width], all finite and in [0, 1]."""
    tensor = as_tensor(name, images)
    if tensor.ndim != 3 and not (tensor.ndim == 4 and tensor.shape[1] == COLOURS):
        raise InputError(
            f"{name} must have the shape [number, height, width], not {list(tensor.shape)}: "
            "flatten nothing, and drop a channel axis; in colour, [number, 3, height, width]."
        )
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.get_default_dtype())
    check_values(name, tensor)
    return tensor if dtype is None else tensor.to(dtype)


def as_tensor(name: str, values: Any) -> Tensor:
    """`values` as a tensor; an error names what torch cannot turn into one."""
    if isinstance(values, np.ndarray) and (min(values.strides, default=0) < 0 or not values.flags.writeable):
        values = values.copy()  # torch shares memory with neither
    try:
        tensor = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} must be an array or a tensor of numbers: {error}.") from None
    if tensor.is_complex():
        raise InputError(f"{name} must be real numbers, not complex ones.")
    return tensor


def check_values(name: str, tensor: Tensor) -> None:
    """Refuse NaN, infinities and values outside [0, 1]."""
    if tensor.numel() == 0:
        return
    low, high = (float(value) for value in torch.aminmax(tensor))
    if not 0.0 <= low <= high <= 1.0:
        if bool(torch.isfinite(tensor).all()):
            raise InputError(
                f"{name} must lie in [0, 1], but range from {low:g} to {high:g}: divide 8-bit images by 255."
            )
        raise InputError(f"{name} hold NaN or infinite values: remove or replace them first.")


def check_shape(name: str, tensor: Tensor, expected: Sequence[int]) -> None:
    """Refuse items of another shape than the model's."""
    if tuple(tensor.shape[1:]) != tuple(expected):
        raise InputError(
            f"{name} have the shape {list(tensor.shape[1:])}, but the model works on {list(expected)}: "
            "resize them, or build a model of that size."
        )


def as_targets(x: Any, shape: Sequence[int], like: Tensor) -> Tensor:
    """Targets x of the model's image `shape`, at least one, with the type and on the device of `like`."""
    if like.dtype in (torch.float16, torch.bfloat16):
        kind = str(like.dtype).removeprefix("torch.")
        raise InputError(
            f"The weights are in {kind}, too coarse for a bound: call model.float(); for speed, torch.autocast."
        )
    images = as_images("targets", x)
    check_shape("targets", images, shape)
    if len(images) == 0:
        raise InputError("There are no targets: give at least one image.")
    return images.to(like)


def check_samples(samples: Any, least: int, what: str) -> None:
    """Refuse a number of samples K that `what` cannot work with."""
    if not is_whole(samples):
        raise InputError(f"{what} needs a whole number of samples K, not {samples!r}.")
    if samples < least:
        raise InputError(f"{what} needs K >= {least} samples, not {samples}.")
    if samples > MOST:
        raise InputError(f"{what} needs K <= {MOST} samples, not {shown(samples)}.")


def is_whole(value: Any) -> bool:
    """Whether `value` is a whole number of Python or NumPy."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_counts(question: object, **least: int) -> None:
    """Refuse options in which a named attribute, or any number of a list there, is below its `least` value."""
    for name, fewest in least.items():
        given = getattr(question, name)
        check_least(name, given if isinstance(given, tuple) else (given,), fewest)


def check_least(name: str, values: Sequence[int], fewest: int) -> None:
    """Refuse a value less than `fewest`, or larger than anybody can mean."""
    for value in values:
        if value < fewest:
            raise InputError(f"{name} must be {fewest} or more, not {value}.")
        if value > (most := ENORMOUS.get(name, MOST)):
            raise InputError(f"{name} must be {most} or less, not {shown(value)}.")


def check_positive(**given: int | tuple[int, ...]) -> None:
    """Refuse numbers less than 1, and lists that are empty or hold such a number."""
    for name, values in given.items():
        if values == ():
            raise InputError(f"{name} needs at least one number.")
        check_least(name, values if isinstance(values, tuple) else (values,), 1)


def generator_of(seed: int | None, device: torch.device) -> torch.Generator | None:
    """A generator with that seed on `device`; None, for torch's global one, where there is no seed."""
    if seed is None:
        return None
    if not is_whole(seed) or not 0 <= seed < 2**63:
        raise InputError(f"The seed must be a whole number from 0 to 2^63 − 1, not {seed!r}.")
    return torch.Generator(device).manual_seed(int(seed))
