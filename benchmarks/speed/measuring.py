"""What a computation costs: seconds beside its alternatives, floating-point operations, bytes."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from weakref import finalize

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten
from torch.utils.flop_counter import FlopCounterMode

from vma.errors import InputError
from vma.reproduce.update_times import Clock, by_turns
from vma.runs.processes import keep_memory

SGEMM = "matrix product"


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """`count` threads of torch, and as many as before afterwards; freed memory is kept, as in training."""
    if count < 1:
        raise InputError(f"threads must be at least 1, not {count}.")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    keep_memory()
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class Times:
    """Seconds of every side in every round."""

    seconds: dict[str, list[float]]

    def median(self, side: str) -> float:
        """Median seconds of a side."""
        return median(self.seconds[side])

    def ratios(self, slow: str, fast: str) -> list[float]:
        """How many times longer `slow` takes than `fast` in each round."""
        return [s / f for s, f in zip(self.seconds[slow], self.seconds[fast], strict=True)]

    def ratio(self, slow: str, fast: str) -> float:
        """How many times longer `slow` takes than `fast`: the median of the rounds' ratios."""
        return median(self.ratios(slow, fast))


def interleaved(sides: Mapping[str, Callable[[], object]], repeats: int, clock: Clock = "wall") -> Times:
    """Run every side once to warm up, then once in each of `repeats` rounds."""
    return Times(by_turns(sides, repeats, clock))


class MatrixProduct:
    """A · B of two square float32 matrices: the fastest arithmetic that torch has here."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise InputError(f"The matrices must be at least 1 wide, not {size}.")
        self.left, self.right = torch.rand(2, size, size, dtype=torch.float32)
        self.flops = 2 * size**3

    def __call__(self) -> object:
        """Compute it."""
        return self.left @ self.right


def count_flops(run: Callable[[], object]) -> int:
    """Operations of the matrix products and convolutions in `run`, forwards and backwards; 2 for a multiply-add.

    A convolution counts all taps of its kernel, those on the zero border too. Left out is what is not a product of
    matrices: activations, sums, gathers, softmax, likelihood and optimiser.
    """
    with FlopCounterMode(display=False) as counter:
        run()
    return int(counter.get_total_flops())


def peak_memory() -> int | None:
    """The most bytes that this process has had in memory; None where the system does not tell.

    On Linux not by ru_maxrss, which a new process inherits from the one that started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return 1024 * int(line.split()[1])
    if sys.platform == "darwin":
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return None


def peak_of_tensors(run: Callable[[], object]) -> int:
    """The most bytes that the tensors made in `run` take at a time, without what an operation uses within."""
    with Tensors() as tensors:
        run()
    return tensors.peak


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
