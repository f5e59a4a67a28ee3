"""Evaluations that are cut, shared out, or made twice."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from tests.helpers.small_runs import child, ending, fit, small, tiny
from tests.helpers.trained_models import drawings
from vma import InputError
from vma.commands.evaluation import EVALUATIONS, evaluate_command, usage
from vma.evaluation.answers import answer, answer_of, newest
from vma.evaluation.resumable import Evaluation, kept_rows
from vma.fewshot import load
from vma.runs.folder import Run
from vma.runs.processes import Processes

HERE = Processes(0, 1, torch.device("cpu"))


def here() -> str:
    """As many threads as there are, so that none are left changed."""
    return str(torch.get_num_threads())


@dataclass(frozen=True)
class Square:
    square: int


@dataclass(frozen=True)
class Sum:
    sum: int


def counting(calls: list[int], fails_at: int = -1, parts: int = 5) -> Evaluation[Square, Sum]:
    def part(number: int) -> Square:
        if number == fails_at:
            raise KeyboardInterrupt
        calls.append(number)
        return Square(number * number)

    def summary(rows: list[Square]) -> Sum:
        return Sum(sum(row.square for row in rows))

    return Evaluation("squares", {"seed": 1}, parts, part, Square, summary)


def test_a_cut_evaluation_goes_on_where_it_stopped(tmp_path: Path) -> None:
    calls: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        answer(counting(calls, fails_at=3), tmp_path, HERE)
    with next(iter((tmp_path / "unfinished").glob("*.jsonl"))).open("a") as file:
        file.write('\n{"unit": 3, "row"')  # the power went out
    found = answer(counting(calls), tmp_path, HERE)
    assert calls == [0, 1, 2, 3, 4]
    assert found.results == Sum(30)
    assert list((tmp_path / "unfinished").iterdir()) == []


def test_rows_of_other_processes_count(tmp_path: Path) -> None:
    evaluation, calls = counting([]), []
    path = tmp_path / "unfinished" / f"{evaluation.digest}-1.jsonl"
    path.parent.mkdir()
    kept = ('{"unit": 1, "row": {"square": 1}}', "nonsense", '{"unit": 4, "row": {"square": 16}}')
    path.write_text("\n".join((*kept, '{"unit": 3, "row": {"cube": 27}}')))
    assert answer(counting(calls), tmp_path, HERE).results == Sum(30)
    assert calls == [0, 2, 3]


def test_answers_are_added_and_never_overwritten(tmp_path: Path) -> None:
    evaluation = counting([])
    assert newest(tmp_path, evaluation) is None
    files = [answer(evaluation, tmp_path, HERE).file for _ in range(3)]
    assert len(set(files)) == 3
    assert all(json.loads(Path(file).read_text())["results"] == {"sum": 30} for file in files)
    found = newest(tmp_path, evaluation)
    assert found is not None
    assert answer_of(json.loads(found.read_text()), {"squares": Sum}).results == Sum(30)
    assert newest(tmp_path, counting([], parts=6)) is None


def keep_many(folder: Path) -> None:
    """What an evaluation that is over at once does, twenty times in a second."""
    for _ in range(20):
        answer(counting([]), folder, HERE)


def test_answers_of_three_processes_at_once_are_all_kept(tmp_path: Path) -> None:
    processes = [child(keep_many, tmp_path) for _ in range(3)]
    assert [ending(process) for process in processes] == [0, 0, 0]
    files = list(tmp_path.glob("squares-*.json"))
    assert len(files) == 60
    assert all(json.loads(file.read_text())["results"] == {"sum": 30} for file in files)


def test_what_an_older_version_kept_still_counts(tmp_path: Path) -> None:
    """It called a model by a hash of its file."""
    now, before = (
        replace(counting([]), about={"model": {"weights": name}}) for name in ("identity", "of the file")
    )
    formerly = {"identity": "of the file"}
    path = tmp_path / "unfinished" / f"{before.digest}-0.jsonl"
    path.parent.mkdir()
    path.write_text('{"unit": 2, "row": {"square": 4}}')
    assert kept_rows(path.parent, now, formerly) == {2: Square(4)}
    assert kept_rows(path.parent, now) == {}
    found = answer(before, tmp_path, HERE)
    assert newest(tmp_path, now) is None
    assert newest(tmp_path, now, formerly) == Path(found.file)


def test_another_evaluation_does_not_use_the_rows(tmp_path: Path) -> None:
    evaluation = counting([])
    with pytest.raises(KeyboardInterrupt):
        answer(counting([], fails_at=2), tmp_path, HERE)
    assert set(kept_rows(tmp_path / "unfinished", evaluation)) == {0, 1}
    assert kept_rows(tmp_path / "unfinished", counting([], parts=6)) == {}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Cannot write"):
        answer(counting([]), tmp_path / "file", HERE)


# --- the command -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return fit(small(updates=3), tmp_path_factory.mktemp("runs") / "small")


BRIEF = {
    "nll": ["--episodes", "2", "--samples", "3"],
    "classes": ["--classes", "1", "2", "--samples", "2"],
    "shots": ["--shots", "1", "2", "--classes", "10", "--samples", "2"],
    "classify": ["--tasks", "2", "1", "3", "1", "--trials", "4", "--samples", "1"],
    "calibration": ["--tasks", "2", "1", "--trials", "3", "--rules", "joined", "address", "--samples", "1"],
    "novelty": ["--episodes", "2", "--classes", "2", "--absent", "1", "--shots", "2", "--samples", "2"],
    "posterior": ["--episodes", "2", "--classes", "2", "--shots", "2", "--samples", "2"],
    "samples": ["--rows", "2", "--samples", "2"],
    "recall": ["--targets", "3", "--samples", "2", "--index"],
}


def memory_on_disk(run: Run, folder: Path) -> str:
    """A folder with a few drawings, and keys of the run's model."""
    model = load(run.folder)
    config = model.model.config
    model.create_memory(folder).add(list(drawings(5, (config.height, config.width))))
    return str(folder)


@pytest.mark.parametrize("name", EVALUATIONS)
def test_every_evaluation_can_be_made_from_the_shell(
    name: str, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.set_default_dtype(torch.float32)
    place = [memory_on_disk(run, tmp_path / "memory")] if name == "recall" else []
    evaluate_command(
        [str(run.folder), name, *BRIEF[name], *place, "--out", str(tmp_path), "--threads", here()]
    )
    said = capsys.readouterr().out.split("The answer:")[1].split("Its figure:")[0]
    path = Path(said.replace("\n", "").strip())
    found = json.loads(path.read_text())
    assert found["evaluation"] == name
    assert found["model"]["updates"] == 3
    assert found["data"]["name"] == "glyphs"
    assert {"seed", "results", "command", "revision", "finished"} <= set(found)
    assert found["command"].startswith("vma evaluate")


MISTAKES = {
    "no samples": ("nll", ["--samples", "0"], "samples must be 1 or more, not 0"),
    "no episodes": ("nll", ["--episodes", "0"], "episodes must be 1 or more, not 0"),
    "a negative seed": ("nll", ["--seed", "-1"], "seed must be 0 or more, not -1"),
    "too many classes": ("classes", ["--classes", "5000"], "fewer than any of .5000.: ask for fewer"),
    "a negative number": ("classes", ["--classes", "2", "-1"], "classes must be 0 or more, not -1"),
    "no shots": ("shots", ["--shots", "0"], "1 or more items of each class"),
    "nothing to look at": ("posterior", ["--episodes", "0"], "episodes must be 1 or more"),
    "no rows": ("samples", ["--rows", "0"], "rows must be 1 or more"),
    "an empty memory": ("samples", ["--shots", "0"], "shots must be 1 or more"),
    "no trials": ("classify", ["--trials", "0"], "trials must be 1 or more"),
}


@pytest.mark.parametrize(("name", "arguments", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_options_that_make_no_sense(name: str, arguments: list[str], message: str, run: Run) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_command([str(run.folder), name, *arguments, "--threads", here()])


def test_shots_named_twice_are_measured_once(run: Run, tmp_path: Path) -> None:
    torch.set_default_dtype(torch.float32)
    few = ["--classes", "5", "--samples", "2", "--out", str(tmp_path), "--threads", here()]
    evaluate_command([str(run.folder), "shots", "--shots", "2", "2", "1", *few])
    found = json.loads(next(tmp_path.glob("shots-*.json")).read_text())
    assert [point["shots"] for point in found["results"]["points"]] == [2, 1]
    assert found["shots"] == [2, 1]


@pytest.mark.parametrize(
    "name", ["omniglot-vae", "omniglot-soft", "gmn-gmn", "mnist-recall", "mnist-learned-64"]
)
def test_every_kind_of_model_has_a_likelihood(name: str, tmp_path: Path) -> None:
    folder = fit(tiny(name), tmp_path / "run").folder
    torch.set_default_dtype(torch.float32)
    few = ["--episodes", "2", "--targets", "2", "--samples", "3", "--out", str(tmp_path), "--threads", here()]
    evaluate_command([str(folder), "nll", *few])
    assert len(list(tmp_path.glob("nll-*.json"))) == 1


def test_processes_share_the_work_and_agree_with_one(run: Run, tmp_path: Path) -> None:
    options = [str(run.folder), "classes", "--classes", "2", "4", "--samples", "4"]
    torchrun = ["torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29571", "-m", "vma"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for name, command in (("one", ["vma"]), ("two", torchrun)):
        whole = [sys.executable, "-m", *command, "evaluate", *options, "--out", str(tmp_path / name)]
        done = subprocess.run(
            whole, capture_output=True, text=True, env=environment, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
    one, two = (json.loads(next((tmp_path / n).glob("*.json")).read_text()) for n in ("one", "two"))
    assert one["results"] == two["results"]
    assert (one["processes"], two["processes"]) == (1, 2)


def test_mistakes_are_answered_in_a_sentence(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="classify"):
        evaluate_command([str(run.folder), "clasify"])
    with pytest.raises(InputError, match="no run in"):
        evaluate_command(["nowhere", "nll"])
    evaluate_command([])
    assert usage() in capsys.readouterr().out
