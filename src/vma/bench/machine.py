"""The machine that numbers belong to: processor, cores, threads, versions; its memory in use."""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from vma import __version__
from vma.errors import InputError
from vma.kernels import compiled
from vma.runs.processes import keep_memory


def machine() -> dict[str, Any]:
    """What a number must be read with."""
    return {
        "processor": processor(),
        "cores": cores(),
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": str(torch.__version__),
        "numba": version("numba") if compiled.installed() else None,
        "python": platform.python_version(),
        "system": platform.system(),
        "vma": __version__,
    }


def described(about: dict[str, Any]) -> str:
    """A line on the machine of a result."""
    parts = [
        about["processor"],
        f"{about['cores']} cores",
        f"{about['threads']} thread(s)",
        about["instructions"],
    ]
    names = [f"{name} {about[name]}" for name in ("torch", "numba") if about.get(name)]
    return ", ".join([*parts, *names])


def processor() -> str:
    """Name of the processor, as far as the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def cores() -> int:
    """Cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def threads(count: int) -> Iterator[None]:
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
