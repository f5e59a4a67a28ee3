"""Where loops compiled by Numba, the optional `fast` of this package, take the place of torch's layers.

They are for bounds of many reads on one thread: `one_pass` and `winograd` have them.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from inspect import unwrap

import torch

from vma.kernels.maps import Maps

MANY = 20_000  # reads: in about as many, compiled loops of 64 maps save the time that compiling takes
TYPES = (torch.float32, torch.float64)
# Of a Numba that does not suit numpy, or whose library does not load.
BROKEN = (ImportError, OSError, SystemError)

many: ContextVar[bool] = ContextVar("many", default=False)
allowed: ContextVar[bool] = ContextVar("allowed", default=True)


@contextmanager
def within(variable: ContextVar[bool], value: bool) -> Iterator[None]:
    """A context in which a variable has another value."""
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


def for_reads(count: int) -> AbstractContextManager[None]:
    """A context in which networks see `count` reads: if these are many, compiled loops may do the work."""
    return within(many, count >= MANY)


def by_layers() -> AbstractContextManager[None]:
    """A context in which no compiled loop is used: for comparisons, and for counting operations."""
    return within(allowed, False)


def applies(h: Maps) -> bool:
    """Whether compiled loops save time for h: many reads, no gradient, one thread (with two they gain little)."""
    alone = h.device.type == "cpu" and h.dtype in TYPES and torch.get_num_threads() == 1
    plain = not torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu")
    return many.get() and allowed.get() and alone and plain and installed()


@cache
def installed() -> bool:
    """Whether there is a Numba that works."""
    try:
        import_module("numba")
    except BROKEN:
        return False
    return True


@cache
def compiled(loop: Callable[..., None]) -> Callable[..., None]:
    """`loop` in the processor's own instructions; sums may be reordered, NaN and infinity are respected."""
    import numba

    # Unwrapped: where the types of arguments are checked, as in the tests, a function has a wrapper.
    return numba.njit(unwrap(loop), fastmath={"reassoc", "contract", "nsz"}, nogil=True)
