"""A limit on the numbers that a model allocates while it is built, since a small file could ask for gigabytes."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from vma.errors import InputError

SIZED = (torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn)


class Allowance(TorchFunctionMode):
    """A context in which only so many numbers may be allocated as tensors; one more raises an `InputError`.

    Attributes:
        left: Numbers that may still be allocated.
        name: What the error names as the cause.
    """

    def __init__(self, numbers: int, name: str) -> None:
        super().__init__()
        self.left, self.name = numbers, name

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Count what a call is about to allocate."""
        kwargs = kwargs or {}
        if func in SIZED:
            self.left -= numbers_of(*args[:1] if func is torch.full else args, size=kwargs.get("size"))
        if self.left < 0:
            raise InputError(f"{self.name} asks for far more weights than it holds: it is damaged.")
        return func(*args, **kwargs)


def numbers_of(*sizes: Any, size: Any = None) -> int:
    """How many numbers a tensor of these sizes has: given one by one, or as one sequence."""
    if size is None:
        size = sizes[0] if sizes and not isinstance(sizes[0], int) else sizes
    return math.prod(int(each) for each in size)
