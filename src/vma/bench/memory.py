"""Bytes of the tensors that a computation makes."""

from collections.abc import Callable
from typing import Any
from weakref import finalize

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten


class Tensors(TorchDispatchMode):
    """Sums the bytes of tensors that are made and not yet freed, and keeps the largest sum."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.peak, self.known = 0, 0, set[int]()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Look at every operation: a storage that comes out and did not go in is new."""
        self.known |= {storage.data_ptr() for storage in storages((args, kwargs))}
        found = func(*args, **(kwargs or {}))
        for storage in storages(found):
            if storage.data_ptr() not in self.known:
                self.count(storage.data_ptr(), storage.nbytes())
                finalize(storage, self.free, storage.data_ptr(), storage.nbytes())
        return found

    def count(self, address: int, size: int) -> None:
        """A storage is there."""
        self.known.add(address)
        self.now += size
        self.peak = max(self.peak, self.now)

    def free(self, address: int, size: int) -> None:
        """A storage is gone."""
        self.known.discard(address)
        self.now -= size


def storages(values: Any) -> list[torch.UntypedStorage]:
    """The storages of all tensors in nested `values`."""
    return [value.untyped_storage() for value in tree_flatten(values)[0] if isinstance(value, torch.Tensor)]


def peak_of_tensors(run: Callable[[], object]) -> int:
    """The most bytes that the tensors made in `run` take at a time, without what an operation uses within."""
    with Tensors() as tensors:
        run()
    return tensors.peak
