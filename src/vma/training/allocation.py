"""Keeping freed memory: on Linux, glibc otherwise returns and re-maps large blocks at every update."""

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
ONE_GIGABYTE = 1 << 30


def keep_memory() -> None:
    """Raise glibc's thresholds for returning memory, where there is a glibc; elsewhere do nothing."""
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(M_MMAP_THRESHOLD, ONE_GIGABYTE)
        library.mallopt(M_TRIM_THRESHOLD, ONE_GIGABYTE)
