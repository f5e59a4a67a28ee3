"""The metrics of a run: one JSON object per line; a damaged line does not spoil the others."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vma.errors import InputError
from vma.files import read_ordinary, write_atomically

Row = dict[str, Any]


@dataclass(frozen=True)
class Metrics:
    """What a file of metrics holds.

    Attributes:
        rows: Its lines, each with the `update` that it belongs to.
        damaged: Numbers of the unreadable lines; a last line that a crash cut short does not count.
    """

    rows: list[Row]
    damaged: list[int]

    def complaint(self, path: Path) -> str:
        """A sentence about the damaged lines; empty if there are none."""
        if not self.damaged:
            return ""
        first = f"line {self.damaged[0]}" if len(self.damaged) == 1 else f"{len(self.damaged)} lines"
        return f"{path} is damaged at {first}: the others are used."


def read_metrics(path: Path) -> Metrics:
    """The metrics in a file; empty if there is no file."""
    if not path.exists():
        return Metrics([], [])
    *whole, last = read_ordinary(path, "file of metrics").split(b"\n")
    rows = {number: row_of(line) for number, line in enumerate([*whole, last], start=1) if line.strip()}
    cut = len(whole) + 1  # the number of an unfinished last line
    return Metrics(
        [row for row in rows.values() if row is not None],
        [number for number, row in rows.items() if row is None and number != cut],
    )


def row_of(line: bytes) -> Row | None:
    """A line of metrics, an update and numbers by name; None if it is something else."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict) or not is_count(row.get("update")):
        return None
    return row if all(isinstance(each, float | int) for each in row.values()) else None


def is_count(value: object) -> bool:
    """Whether a value is a whole number and not negative."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def append_row(path: Path, row: Row) -> None:
    """Add a line."""
    try:
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.") from None


def keep_rows_until(path: Path, update: int) -> str:
    """Drop lines after `update`, which a resumed run rewrites; return a sentence on damaged ones, if any."""
    found = read_metrics(path)
    kept = [json.dumps(row) + "\n" for row in found.rows if row["update"] <= update]
    write_atomically(path, "".join(kept).encode())
    return found.complaint(path)
