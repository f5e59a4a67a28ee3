"""Answers as JSON, one file each: added, never overwritten."""

import json
import time
from pathlib import Path
from typing import Any

import vma
from vma.errors import InputError
from vma.evaluation.resumable import Evaluation, Show, forget_rows, work
from vma.files import write_atomically
from vma.runs.folder import revision
from vma.runs.processes import Processes


def answer(
    evaluation: Evaluation, folder: Path, here: Processes, *, command: str = "", show: Show | None = None
) -> dict[str, Any]:
    """The answer of an evaluation, made or resumed, and written to `folder` by the first process.

    The name of the file holds the evaluation's digest and the time: every answer stays.
    """
    unfinished = folder / "unfinished"
    began = time.monotonic()
    rows = work(evaluation, here, unfinished, show)
    found = {
        "evaluation": evaluation.name,
        **evaluation.about,
        "results": evaluation.summary(rows),
        "command": command,
        "seconds": round(time.monotonic() - began, 3),
        "processes": here.world,
        "vma": vma.__version__,
        "revision": revision(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
    if here.is_first:
        found["file"] = str(keep(folder, evaluation, found))
        forget_rows(unfinished, evaluation.digest)
    return found


def keep(folder: Path, evaluation: Evaluation, found: dict[str, Any]) -> Path:
    """Write an answer to a file of its own."""
    stem = f"{evaluation.name}-{evaluation.digest[:8]}-{time.strftime('%Y%m%d-%H%M%S')}"
    paths = (folder / f"{stem}{number}.json" for number in ("", *(f"-{i}" for i in range(2, 1000))))
    path = next((path for path in paths if not path.exists()), None)
    if path is None:
        raise InputError(f"{folder} holds a thousand answers of this second already: wait a moment.")
    write_atomically(path, json.dumps(found, indent=1).encode())
    return path


def earlier(folder: Path, evaluation: Evaluation) -> dict[str, Any] | None:
    """The newest answer in `folder` of exactly this evaluation."""
    paths = sorted(folder.glob(f"{evaluation.name}-{evaluation.digest[:8]}-*.json"))
    return json.loads(paths[-1].read_text()) if paths else None
