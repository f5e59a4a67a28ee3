"""An evaluation as independent parts: shared out over processes, resumed where it was cut."""

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import torch.distributed as dist

from vma.errors import InputError
from vma.evaluation.json_values import plain
from vma.runs.processes import Processes

Row = TypeVar("Row")
Results = TypeVar("Results")
Show = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class TargetResults:
    """Results that say of how many targets they are."""

    number_of_targets: int


@dataclass(frozen=True)
class Evaluation(Generic[Row, Results]):
    """What is measured of a model, as independent parts.

    Attributes:
        name: Which evaluation, such as `nll`.
        about: All that the answer depends on: model, data, protocol, K, seed, number of targets.
        parts: Number of parts.
        part: The row of one part: a function of the part's number and nothing else.
        row: The dataclass of such rows, as which those of a cut evaluation are read.
        summary: What all rows, in order, add up to.
    """

    name: str
    about: dict[str, Any]
    parts: int
    part: Callable[[int], Row]
    row: type[Row]
    summary: Callable[[list[Row]], Results]

    @property
    def digest(self) -> str:
        """A name for this evaluation and no other."""
        text = json.dumps([self.name, self.about, self.parts], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def results(self) -> Results:
        """The results, made here and now, and kept nowhere."""
        return self.summary([self.part(number) for number in range(self.parts)])


def work(
    evaluation: Evaluation[Row, Results], here: Processes, unfinished: Path, show: Show | None = None
) -> list[Row]:
    """The rows of all parts, in order, on every process.

    Rows are kept in the folder `unfinished` as they are made, one file a process, and those that are there
    already, whatever processes made them, are not made again.
    """
    done = kept_rows(unfinished, evaluation)
    if here.world > 1:
        done = shared(done)
    mine = [i for i in range(evaluation.parts) if i not in done][here.rank :: here.world]
    for count, number in enumerate(mine):
        done[number] = evaluation.part(number)
        keep_row(unfinished / f"{evaluation.digest}-{here.rank}.jsonl", number, done[number])
        if show:
            show(count + 1, len(mine))
    if here.world > 1:
        done = shared(done)
    return [done[i] for i in range(evaluation.parts)]


def shared(rows: dict[int, Row]) -> dict[int, Row]:
    """The rows of all processes."""
    everybody: list[dict[int, Row] | None] = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, rows)
    return {number: row for each in everybody if each for number, row in each.items()}


def keep_row(path: Path, number: int, row: object) -> None:
    """Add one row to a file; a line that a crash cut short is left out when it is read."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write("\n" + json.dumps({"unit": number, "row": plain(row)}))
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.") from None


def kept_rows(unfinished: Path, evaluation: Evaluation[Row, Results]) -> dict[int, Row]:
    """The rows of an evaluation that earlier processes left; what is no such row is made again."""
    rows = {}
    for path in sorted(unfinished.glob(f"{evaluation.digest}-*.jsonl")):
        for line in path.read_text().splitlines():
            try:
                kept = json.loads(line)
                rows[int(kept["unit"])] = msgspec.convert(kept["row"], evaluation.row)
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
