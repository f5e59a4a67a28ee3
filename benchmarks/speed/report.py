"""A result as a table, and as JSON on the last line, with the machine that its numbers belong to."""

import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from vma import __version__
from vma.kernels import compiled

Result = dict[str, Any]


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table whose first column is text and whose others are numbers."""
    found = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for i, name in enumerate(head):
        found.add_column(name, justify="left" if i == 0 else "right")
    for row in rows:
        found.add_row(*row)
    return found


def present(result: Result, shown: Sequence[Table | str], as_json: bool) -> None:
    """Print tables and sentences, what machine they are of, and with `as_json` the whole result in one line."""
    console = Console()
    for part in shown:
        console.print(part, highlight=False)
    about = machine()
    console.print(f"[dim]{described(about)}[/dim]", highlight=False)
    if as_json:
        print(json.dumps({**result, "machine": about}))


def seconds(value: float) -> str:
    """1.23 s, 45.6 ms, 7.8 µs."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"


def size(value: float | int) -> str:
    """1.2 GB, 3.4 MB, 56 kB."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.0f} B"


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
