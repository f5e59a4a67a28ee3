"""An evaluation as independent parts: shared out over processes, resumed where it was cut."""

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.distributed as dist

from vma.errors import InputError
from vma.runs.processes import Processes

Row = dict[str, Any]
Show = Callable[[int, int], None]


@dataclass(frozen=True)
class Evaluation:
    """What is measured of a model, as independent parts.

    Attributes:
        name: Which evaluation, such as `nll`.
        about: All that the answer depends on: model, data, protocol, K, seed, number of targets.
        parts: Number of parts.
        part: The row of one part: plain numbers, a function of the part's number and nothing else.
        summary: What all rows, in order, add up to.
    """

    name: str
    about: dict[str, Any]
    parts: int
    part: Callable[[int], Row]
    summary: Callable[[list[Row]], dict[str, Any]]

    @property
    def digest(self) -> str:
        """A name for this evaluation and no other."""
        text = json.dumps([self.name, self.about, self.parts], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def work(evaluation: Evaluation, here: Processes, unfinished: Path, show: Show | None = None) -> list[Row]:
    """The rows of all parts, in order, on every process.

    Rows are kept in the folder `unfinished` as they are made, one file a process, and those that are there
    already, whatever processes made them, are not made again.
    """
    done = kept_rows(unfinished, evaluation.digest)
    if here.world > 1:
        done = shared(done)
    mine = [i for i in range(evaluation.parts) if i not in done][here.rank :: here.world]
    for count, number in enumerate(mine):
        row = evaluation.part(number)
        keep_row(unfinished / f"{evaluation.digest}-{here.rank}.jsonl", number, row)
        done[number] = row
        if show:
            show(count + 1, len(mine))
    if here.world > 1:
        done = shared(done)
    return [json.loads(json.dumps(done[i])) for i in range(evaluation.parts)]


def shared(rows: dict[int, Row]) -> dict[int, Row]:
    """The rows of all processes."""
    everybody: list[dict[int, Row] | None] = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, rows)
    return {number: row for each in everybody if each for number, row in each.items()}


def keep_row(path: Path, number: int, row: Row) -> None:
    """Add one row to a file; a line that a crash cut short is left out when it is read."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write("\n" + json.dumps({"unit": number, "row": row}))
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.") from None


def kept_rows(unfinished: Path, digest: str) -> dict[int, Row]:
    """The rows of an evaluation that earlier processes left."""
    rows = {}
    for path in sorted(unfinished.glob(f"{digest}-*.jsonl")):
        for line in path.read_text().splitlines():
            try:
                kept = json.loads(line)
                rows[int(kept["unit"])] = kept["row"]
            except (ValueError, KeyError, TypeError):
                continue
    return rows


def forget_rows(unfinished: Path, digest: str) -> None:
    """Delete the rows that were kept of an evaluation, once its answer is written."""
    for path in unfinished.glob(f"{digest}-*.jsonl"):
        path.unlink(missing_ok=True)


def progress(done: int, parts: int) -> None:
    """A line that is written over: how far it is."""
    print(f"\r{done} of {parts}", end="\n" if done == parts else "", file=sys.stderr, flush=True)
