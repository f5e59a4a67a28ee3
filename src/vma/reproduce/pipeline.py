"""`reproduce`: train missing runs, make missing answers, collect, draw; an interrupted experiment goes on."""

import json
import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import torch

import vma
from vma import evaluation
from vma.errors import InputError
from vma.evaluation.answers import Answer, answer, answer_of, newest
from vma.evaluation.resumable import progress
from vma.files import from_outside, read_ordinary, write_atomically
from vma.plotting.style import png
from vma.reproduce.crossover import TimingResults
from vma.reproduce.experiment import Experiment, OpenRuns, PlannedEvaluation, Scale
from vma.reproduce.findings import Answers, Finding
from vma.reproduce.run_store import RunStore, chosen, minutes_each, obtain_run
from vma.reproduce.shared_evaluations import CurveResults
from vma.reproduce.table1 import Table1Results
from vma.runs.folder import Run, revision
from vma.runs.processes import Processes, choose_device, number_of_environment

FORMAT = "vma-experiment-1"


RESULTS: dict[str, type] = {
    **evaluation.RESULTS,
    "curve": CurveResults,
    "table": Table1Results,
    "timing": TimingResults,
}  # of each evaluation, by its name


@dataclass(frozen=True)
class Collection:
    """The content of NAME.json: the results of an experiment.

    Attributes:
        format: Name of the file's format.
        experiment: Its name.
        title: A line.
        paper: What the paper reports.
        caption: What its figure shows.
        tiny: Whether it was made at a tiny size, and so is not a result.
        budget_minutes: Minutes for training and evaluation; None for no limit.
        command: The command that gives the same again.
        rows: The findings.
        answers: The file of each answer, relative to this one, by its name in the experiment.
        models: What the answers record of every model, each once.
        vma: Version of this package.
        torch: Version of PyTorch.
        machine: Kind of processor.
        revision: Revision of the code, if known.
        finished: When it was finished.
        threads: Threads of PyTorch.
    """

    format: str
    experiment: str
    title: str
    paper: str
    caption: str
    tiny: bool
    budget_minutes: float | None
    command: str
    rows: list[Finding]
    answers: dict[str, str]
    models: list[dict[str, Any]]
    vma: str
    torch: str
    machine: str
    revision: str | None
    finished: str
    threads: int = 0


def reproduce(
    experiment: Experiment, scale: Scale, store: RunStore, out: Path, given: Mapping[str, Run], command: str
) -> Path | None:
    """Make a figure, table or statement of the paper again; returns the path of its JSON, None if interrupted.

    Args:
        experiment: The experiment.
        scale: How much is done.
        store: Where runs are kept, and how they are trained.
        out: Folder for the collection, its answers and its figure.
        given: Trained runs to use instead of training.
        command: The command that gives the same again.
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
    record = collection(experiment, scale, answers, command)
    write_atomically(path, json.dumps(asdict(record), indent=1, ensure_ascii=False).encode())
    draw(experiment, answers, path.with_suffix(".png"))
    return path


def alone(device: str) -> Processes:
    """This process, which must be the only one, since several would train and write the same files."""
    if number_of_environment("WORLD_SIZE", 1, 1) > 1:
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
) -> Answer[Any]:
    """The answer of an evaluation, an existing one or a new one; its file is relative to `out`."""
    prepared, folder = each.prepare(open_runs), out / name
    path = newest(folder, prepared, open_runs.formerly)
    print(f"{name}: {key}: {'answered before' if path else f'{prepared.parts} parts'}", flush=True)
    if path is None:
        show = progress if sys.stderr.isatty() else None
        command, formerly = open_runs.command, open_runs.formerly
        path = Path(answer(prepared, folder, here, command=command, show=show, formerly=formerly).file)
    return read_answer(out, path.relative_to(out).as_posix())


def read_answer(out: Path, file: str) -> Answer[Any]:
    """The answer in a file of the folder `out`."""
    content = read_ordinary(out / file, "answer")
    with from_outside(f"{out / file} is no readable answer, so move it away and it is made again"):
        return answer_of(msgspec.json.decode(content, type=dict[str, Any]), RESULTS, file)


def collection(experiment: Experiment, scale: Scale, answers: Answers, command: str) -> Collection:
    """The results of an experiment, as they are saved."""
    return Collection(
        format=FORMAT,
        experiment=experiment.name,
        title=experiment.title,
        paper=experiment.paper,
        caption=experiment.caption,
        tiny=scale.tiny,
        budget_minutes=scale.budget or None,
        command=command,
        rows=[replace(each, command=command) for each in experiment.findings(answers)],
        answers={key: found.file for key, found in answers.items()},
        models=models(answers),
        vma=vma.__version__,
        torch=torch.__version__,
        machine=platform.machine(),
        revision=revision(),
        finished=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        threads=torch.get_num_threads(),
    )


def models(answers: Answers) -> list[dict[str, Any]]:
    """Every model that an answer is about, once."""
    found = [each for answer in answers.values() for each in of_answer(answer)]
    return [each for i, each in enumerate(found) if each not in found[:i]]


def of_answer(found: Answer[Any]) -> list[dict[str, Any]]:
    """The models that one answer is about."""
    single = [found.about["model"]] if "model" in found.about else []
    return list(found.about["models"].values()) if "models" in found.about else single


def read_collection(path: Path) -> Collection:
    """A collection from its file; the files of its answers must exist, but are not read."""
    content = read_ordinary(path, "collection")
    with from_outside(f"{path} cannot be read"):
        values = json.loads(content)
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise InputError(f"{path} is not a collection of `vma reproduce`: make it again.")
    with from_outside(f"{path} or an answer of it cannot be read"):
        record = msgspec.convert(values, Collection)
        for file in record.answers.values():
            (path.parent / file).stat()
    return record


def draw(experiment: Experiment, answers: Answers, picture: Path) -> None:
    """Draw the figure of an experiment, from its answers alone."""
    plain = {key: found.to_json() for key, found in answers.items()}
    write_atomically(picture, png(experiment.draw(plain)))
