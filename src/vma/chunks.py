"""Work on many rows in pieces that fit into the cache: slices of rows, and their results joined again."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor


def slices(count: int, size: int) -> Iterator[slice]:
    """0 … `count` − 1 in slices of `size`; one slice of everything if `size` is 0."""
    step = size or max(count, 1)
    return (slice(start, min(start + step, count)) for start in range(0, max(count, 1), step))


def in_chunks(function: Callable[[slice], Tensor], count: int, size: int, dim: int = 0) -> Tensor:
    """[function(0 … size − 1), function(size … 2 size − 1), …], joined along `dim`."""
    parts = [function(part) for part in slices(count, size)]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)
