"""Answers: what an evaluation found, and all that it depends on. One JSON file each, never overwritten."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic

import msgspec

import vma
from vma.errors import InputError
from vma.evaluation.json_values import plain
from vma.evaluation.resumable import Evaluation, Results, Row, Show, all_rows, forget_rows
from vma.evaluation.trained_run import DataDescription, ModelDescription
from vma.files import write_if_absent
from vma.runs.folder import revision
from vma.runs.processes import Processes

PlainAnswer = dict[str, Any]
PlainAnswers = Mapping[str, PlainAnswer]
MADE = ("command", "seconds", "processes", "revision", "finished")  # how an answer was made
NOT_ABOUT = (
    "evaluation",
    "results",
    "vma",
    "file",
    *MADE,
)  # keys of its file that are not part of `about`


@dataclass(frozen=True)
class Answer(Generic[Results]):
    """What an evaluation found.

    Attributes:
        evaluation: Which one, such as `nll`.
        about: All that the results depend on: model, data, protocol, K, seed, number of targets.
        results: A dataclass of numbers, such as `NllResults`.
        command: The command that makes them again.
        seconds: How long they took.
        processes: How many processes shared the work.
        version: Version of this package.
        revision: Revision of its code, if known.
        finished: When they were finished.
        file: The file that holds the answer; empty if it is not kept.
    """

    evaluation: str
    about: dict[str, Any]
    results: Results
    command: str = ""
    seconds: float = 0.0
    processes: int = 1
    version: str = ""
    revision: str | None = None
    finished: str = ""
    file: str = ""

    @property
    def models(self) -> dict[str, ModelDescription]:
        """The models that it is about, by name; a single one has no name."""
        single = {"": self.about["model"]} if "model" in self.about else {}
        return msgspec.convert(self.about.get("models", single), dict[str, ModelDescription])

    @property
    def model(self) -> ModelDescription:
        """The one model that it is about."""
        return self.models[""]

    @property
    def data(self) -> DataDescription:
        """The data that it is about."""
        return msgspec.convert(self.about.get("data", {}), DataDescription)

    def to_json(self) -> PlainAnswer:
        """The answer as its file holds it."""
        return {
            "evaluation": self.evaluation,
            **self.about,
            "results": plain(self.results),
            "command": self.command,
            "seconds": self.seconds,
            "processes": self.processes,
            "vma": self.version,
            "revision": self.revision,
            "finished": self.finished,
        }


def answer_of(values: PlainAnswer, kinds: Mapping[str, type], file: str = "") -> Answer[Any]:
    """The answer that a JSON file holds, whichever version of this package wrote it.

    Args:
        values: What the file holds.
        kinds: The dataclass of each evaluation's results, by its name; other results stay plain values.
        file: The path of the file.
    """
    about = {key: value for key, value in values.items() if key not in NOT_ABOUT}
    name, results = values["evaluation"], values["results"]
    if name in kinds:
        results = msgspec.convert(results, kinds[name])
    made = {key: values[key] for key in MADE if key in values}
    return Answer(name, about, results, version=values.get("vma", ""), **made, file=file)


def answer(
    evaluation: Evaluation[Row, Results],
    folder: Path,
    here: Processes,
    *,
    command: str = "",
    show: Show | None = None,
    formerly: Mapping[str, str] | None = None,
) -> Answer[Results]:
    """The answer of an evaluation, made or resumed, and written to `folder` by the first process.

    The name of the file holds the evaluation's digest and the time, so every answer is kept. Rows left by an
    interrupted evaluation count, including those of older versions, which named the models as `formerly` says.

    >>> from vma.runs.processes import processes
    >>> trained = vma.evaluation.open_run(run)  # what vma.train returned
    >>> evaluation = vma.evaluation.nll(trained, vma.evaluation.NllOptions(episodes=2, samples=4))
    >>> with processes("cpu") as here:
    ...     found = vma.evaluation.answer(evaluation, Path("answers"), here)
    >>> isinstance(evaluation, vma.evaluation.Evaluation), isinstance(found, vma.evaluation.Answer)
    (True, True)
    >>> Path(found.file).exists()
    True
    """
    unfinished = folder / "unfinished"
    began = time.monotonic()
    results = evaluation.summary(all_rows(evaluation, here, unfinished, show, formerly))
    found = Answer(
        evaluation.name,
        evaluation.about,
        results,
        command=command,
        seconds=round(time.monotonic() - began, 3),
        processes=here.world,
        version=vma.__version__,
        revision=revision(),
        finished=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    )
    if here.is_first:
        found = replace(found, file=str(keep(folder, evaluation, found)))
        for digest in evaluation.digests(formerly or {}):
            forget_rows(unfinished, digest)
    return found


def keep(folder: Path, evaluation: Evaluation, found: Answer) -> Path:
    """Write an answer to a file of its own."""
    stem = f"{evaluation.name}-{evaluation.digest[:8]}-{time.strftime('%Y%m%d-%H%M%S')}"
    content = json.dumps(found.to_json(), indent=1).encode()
    paths = (folder / f"{stem}{number}.json" for number in ("", *(f"-{i}" for i in range(2, 1000))))
    path = next((path for path in paths if write_if_absent(path, content)), None)
    if path is None:
        raise InputError(f"{folder} holds a thousand answers of this second already: wait a moment.")
    return path


def newest(folder: Path, evaluation: Evaluation, formerly: Mapping[str, str] | None = None) -> Path | None:
    """The file in `folder` of the newest answer of exactly this evaluation.

    Args:
        folder: The folder of the answers.
        evaluation: The evaluation.
        formerly: Names of the models' identities in older versions, whose answers are equally good.
    """
    digests = evaluation.digests(formerly or {})
    found = [path for each in digests for path in folder.glob(f"{evaluation.name}-{each[:8]}-*.json")]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)
