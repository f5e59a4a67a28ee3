"""When loops compiled by Numba (the extra `fast`) replace torch's layers.

They serve bounds of many reads on one thread; the loops themselves are in `one_pass` and `winograd`.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from inspect import unwrap

import torch

from vma.kernels.maps import Maps

MANY = 20_000  # reads: with about so many, loops of 64 maps save as much time as their compilation takes
TYPES = (torch.float32, torch.float64)
# What the import raises if Numba does not suit NumPy, or its library does not load.
BROKEN = (ImportError, OSError, SystemError)

many: ContextVar[bool] = ContextVar("many", default=False)
allowed: ContextVar[bool] = ContextVar("allowed", default=True)


@contextmanager
def within(variable: ContextVar[bool], value: bool) -> Iterator[None]:
    """A context in which a context variable has another value."""
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


def for_reads(count: int) -> AbstractContextManager[None]:
    """A context in which networks process `count` reads; if these are many, compiled loops may do the work."""
    return within(many, count >= MANY)


def by_layers() -> AbstractContextManager[None]:
    """A context without compiled loops, for comparisons and for counting operations."""
    return within(allowed, False)


def applies(h: Maps) -> bool:
    """Whether compiled loops save time for h: many reads, no gradient and one thread (two gain little)."""
    alone = h.device.type == "cpu" and h.dtype in TYPES and torch.get_num_threads() == 1
    plain = not torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
    return many.get() and allowed.get() and alone and plain and installed()


@cache
def installed() -> bool:
    """Whether Numba is installed and works."""
    try:
        import_module("numba")
    except BROKEN:
        return False
    return True


@cache
def compiled(loop: Callable[..., None]) -> Callable[..., None]:
    """`loop` as machine code; sums may be reordered, but NaN and infinity are respected."""
    import numba

    # Unwrapped: where argument types are checked, as in the tests, a function is wrapped.
    return numba.njit(unwrap(loop), fastmath={"reassoc", "contract", "nsz"}, nogil=True)
