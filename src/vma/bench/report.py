"""A result as a table, and as JSON on the last line."""

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from vma.bench.machine import described, machine

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
