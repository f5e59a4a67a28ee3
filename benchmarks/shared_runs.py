"""Runs of a study in one JSON that several processes share: each takes what nobody has begun."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from vma.files import write_atomically

Row = dict[str, Any]


def stored(path: Path) -> Row:
    """What the JSON holds."""
    return json.loads(path.read_text()) if path.exists() else {"runs": []}


def claim(path: Path, way: str, seed: int) -> bool:
    """Whether this process is to make a run: nobody else has begun it. Delete the file to begin anew."""
    place, name = path.with_suffix(".begun"), f"{way}, seed {seed}"
    with FileLock(f"{place}.lock"):
        begun = place.read_text().splitlines() if place.exists() else []
        rows = [f"{row['way']}, seed {row['seed']}" for row in stored(path)["runs"]]
        if name in begun or name in rows:
            return False
        place.write_text("\n".join([*begun, name]))
    return True


def add(path: Path, row: Row, settings: dict[str, Row], about: Row) -> None:
    """Add a run to the JSON, beside the settings of every way that it has runs of; in the order of `settings`."""
    with FileLock(path.with_suffix(".lock")):
        order = list(settings)
        rows = [row, *stored(path)["runs"]]
        rows.sort(key=lambda row: (order.index(row["way"]), row["seed"]))
        ways = dict.fromkeys(row["way"] for row in rows)
        answer = {**about, "runs": rows, "settings": {way: settings[way] for way in ways}}
        write_atomically(path, json.dumps(answer, indent=1).encode())


def table(rows: Sequence[Row], figures: dict[str, tuple[str, float, int]]) -> str:
    """A Markdown table of means over seeds, with standard errors where there are several.

    `figures` gives for each heading the name in a row, what it is multiplied by, and the digits to show.
    """
    lines = [f"| way | seeds | {' | '.join(figures)} |", "|---" * (2 + len(figures)) + "|"]
    for way in dict.fromkeys(row["way"] for row in rows):
        mine = [row for row in rows if row["way"] == way]
        cells = [
            cell([row[name] * times for row in mine], digits) for name, times, digits in figures.values()
        ]
        lines.append(f"| {way} | {len(mine)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def cell(values: Sequence[float], digits: int) -> str:
    """mean ± standard error."""
    mean = f"{np.mean(values):.{digits}f}"
    if len(values) == 1:
        return mean
    return f"{mean} ± {np.std(values, ddof=1) / math.sqrt(len(values)):.{digits}f}"
