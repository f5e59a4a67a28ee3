"""`reproduce`: train what is missing, evaluate what has no answer, collect, draw; a cut experiment goes on."""

import json
import os
import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

import vma
from vma.errors import InputError
from vma.evaluation.answers import answer
from vma.evaluation.resumable import Evaluation, progress
from vma.files import write_atomically
from vma.plotting.style import png
from vma.reproduce.experiment import Experiment, OpenRuns, PlannedEvaluation, Scale
from vma.reproduce.findings import Answer, Answers
from vma.reproduce.run_store import RunStore, chosen, minutes_each, obtain_run
from vma.runs.folder import Run, revision
from vma.runs.processes import Processes, choose_device

FORMAT = "vma-experiment-1"


@dataclass(frozen=True)
class Collected:
    """What an experiment has come to.

    Attributes:
        record: NAME.json.
        answers: The answers it points at, by name, each with its `file`.
    """

    record: dict[str, Any]
    answers: Answers


def reproduce(
    experiment: Experiment, scale: Scale, store: RunStore, out: Path, given: Mapping[str, Run], command: str
) -> Path | None:
    """Make a figure, table or statement of the paper again; the path of its JSON, or None if interrupted.

    Args:
        experiment: Which.
        scale: How much is done.
        store: Where runs are kept, and how they are trained.
        out: Folder for the collection, its answers and its figure.
        given: Trained runs to use instead of training.
        command: What to type to get the same again.
    """
    here = alone(store.device)
    runs = obtain_runs(experiment, scale, store, given)
    if runs is None:
        print("Stopped: the same command goes on where it stopped.", flush=True)
        return None
    if store.threads:
        torch.set_num_threads(store.threads)
    open_runs = OpenRuns(runs, store.data, here.device, command)
    plan = {key: each for key, each in experiment.plan(scale).items() if set(each.runs) <= set(runs)}
    answers = {key: answered(key, each, open_runs, out, experiment.name, here) for key, each in plan.items()}
    path = out / f"{experiment.name}.json"
    record = {**collection(experiment, scale, answers, command), "threads": torch.get_num_threads()}
    write_atomically(path, json.dumps(record, indent=1, ensure_ascii=False).encode())
    draw(experiment, path)
    return path


def alone(device: str) -> Processes:
    """This process, which must be the only one: several would train and write the same files."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError(
            "'vma reproduce' is one process: train its runs with 'torchrun -m vma train', and give them by --run."
        )
    return Processes(0, 1, choose_device(device))


def obtain_runs(
    experiment: Experiment, scale: Scale, store: RunStore, given: Mapping[str, Run]
) -> dict[str, Run] | None:
    """All runs of the experiment; None if training was interrupted."""
    needs = chosen(experiment.needs, given, scale)
    minutes = minutes_each(scale, sum(key not in given for key in needs))
    runs = {}
    for number, (key, need) in enumerate(needs.items(), start=1):
        print(f"{experiment.name}: run {number} of {len(needs)}, {key}", flush=True)
        run = given.get(key) or obtain_run(need, scale, store, minutes)
        if run is None:
            return None
        runs[key] = run
    return runs


def answered(
    key: str, each: PlannedEvaluation, open_runs: OpenRuns, out: Path, name: str, here: Processes
) -> Answer:
    """The answer of an evaluation: the one that is there already, or a new one; its file is relative to `out`."""
    evaluation, folder = each.prepare(open_runs), out / name
    path = newest(folder, evaluation)
    print(f"{name}: {key}: {'answered before' if path else f'{evaluation.parts} parts'}", flush=True)
    if path is None:
        show = progress if sys.stderr.isatty() else None
        path = Path(answer(evaluation, folder, here, command=open_runs.command, show=show)["file"])
    return read_answer(out, path.relative_to(out).as_posix())


def newest(folder: Path, evaluation: Evaluation) -> Path | None:
    """The file of the newest answer of exactly this evaluation."""
    found = folder.glob(f"{evaluation.name}-{evaluation.digest[:8]}-*.json")
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def read_answer(out: Path, file: str) -> Answer:
    """The answer in a file of the folder `out`."""
    return {**json.loads((out / file).read_text()), "file": file}


def collection(experiment: Experiment, scale: Scale, answers: Answers, command: str) -> dict[str, Any]:
    """What NAME.json holds."""
    return {
        "format": FORMAT,
        "experiment": experiment.name,
        "title": experiment.title,
        "paper": experiment.paper,
        "caption": experiment.caption,
        "tiny": scale.tiny,
        "budget_minutes": scale.budget or None,
        "command": command,
        "rows": [{**asdict(each), "command": command} for each in experiment.findings(answers)],
        "answers": {key: found["file"] for key, found in answers.items()},
        "models": models(answers),
        "vma": vma.__version__,
        "torch": torch.__version__,
        "machine": platform.machine(),
        "revision": revision(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def models(answers: Answers) -> list[dict[str, Any]]:
    """Every model that an answer is on, once."""
    found = [each for answer in answers.values() for each in of_answer(answer)]
    return [each for i, each in enumerate(found) if each not in found[:i]]


def of_answer(found: Answer) -> list[dict[str, Any]]:
    """The models that one answer is on."""
    return (
        list(found["models"].values()) if "models" in found else [found["model"]] if "model" in found else []
    )


def read_collection(path: Path) -> Collected:
    """A collection and its answers, from their files alone."""
    try:
        record = json.loads(path.read_text())
        if record.get("format") != FORMAT:
            raise InputError(f"{path} is not a collection of `vma reproduce`: make it again.")
        answers = {key: read_answer(path.parent, file) for key, file in record["answers"].items()}
    except (OSError, ValueError, AttributeError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} or an answer of it cannot be read: {error}.") from None
    return Collected(record, answers)


def draw(experiment: Experiment, path: Path) -> Path:
    """Draw the figure of a collection, from its files alone, beside it."""
    picture = path.with_suffix(".png")
    write_atomically(picture, png(experiment.draw(read_collection(path).answers)))
    return picture
