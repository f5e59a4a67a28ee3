"""An evaluation as independent parts, which processes share and an interrupted evaluation resumes."""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import torch.distributed as dist

from vma.errors import InputError
from vma.evaluation.json_values import plain
from vma.files import from_outside, read_ordinary
from vma.runs.processes import Processes

Row = TypeVar("Row")
Results = TypeVar("Results")
Show = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class TargetResults:
    """Results that record the number of targets behind them."""

    number_of_targets: int


@dataclass(frozen=True)
class Evaluation(Generic[Row, Results]):
    """A measurement of a model, split into independent parts.

    Attributes:
        name: Which evaluation, such as `nll`.
        about: All that the answer depends on: model, data, protocol, K, seed, number of targets.
        parts: Number of parts.
        part: The row of one part: a function of the part's number and nothing else.
        row: The dataclass of these rows, as which kept rows are read.
        summary: The results that all rows give, in order.
    """

    name: str
    about: dict[str, Any]
    parts: int
    part: Callable[[int], Row]
    row: type[Row]
    summary: Callable[[list[Row]], Results]

    @property
    def digest(self) -> str:
        """A hash that identifies this evaluation."""
        return self.digests({})[0]

    def digests(self, formerly: Mapping[str, str]) -> list[str]:
        """Its digest, and the digest that it had in older versions if these named its models differently."""
        text = json.dumps([self.name, self.about, self.parts], sort_keys=True)
        before = reduce(lambda old, each: old.replace(f'"{each[0]}"', f'"{each[1]}"'), formerly.items(), text)
        return [hashlib.sha256(each.encode()).hexdigest()[:16] for each in dict.fromkeys((text, before))]

    def results(self, show: Show | None = None) -> Results:
        """The results, made here and now and kept nowhere; `show` is called after each part."""
        rows = []
        for number in range(self.parts):
            rows.append(self.part(number))
            if show:
                show(number + 1, self.parts)
        return self.summary(rows)


def all_rows(
    evaluation: Evaluation[Row, Results],
    here: Processes,
    unfinished: Path,
    show: Show | None = None,
    formerly: Mapping[str, str] | None = None,
) -> list[Row]:
    """The rows of all parts, in order, on every process.

    Rows are kept in the folder `unfinished` as they are made, in one file per process. Rows that any process has
    left there are not made again.
    """
    done = kept_rows(unfinished, evaluation, formerly)
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
    """Add one row to a file; readers skip a line that a crash cut short."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write("\n" + json.dumps({"unit": number, "row": plain(row)}))
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror}.") from None


def kept_rows(
    unfinished: Path, evaluation: Evaluation[Row, Results], formerly: Mapping[str, str] | None = None
) -> dict[int, Row]:
    """The rows of an evaluation that earlier processes left; rows that cannot be read are made again."""
    digests = evaluation.digests(formerly or {})
    paths = [path for each in digests for path in sorted(unfinished.glob(f"{each}-*.jsonl"))]
    rows: dict[int, Row] = {}
    for path in paths:
        content = b""
        with suppress(InputError):  # another process has just ended, and deleted it
            content = read_ordinary(path, "file of rows")
        for line in content.split(b"\n"):
            with suppress(InputError), from_outside("No row"):
                kept = json.loads(line)
                rows[int(kept["unit"])] = msgspec.convert(kept["row"], evaluation.row)
    return rows


def forget_rows(unfinished: Path, digest: str) -> None:
    """Delete the kept rows of an evaluation once its answer is written."""
    for path in unfinished.glob(f"{digest}-*.jsonl"):
        path.unlink(missing_ok=True)


def progress(done: int, parts: int) -> None:
    """Show how far it is, over the line written before."""
    print(f"\r{done} of {parts}", end="\n" if done == parts else "", file=sys.stderr, flush=True)
