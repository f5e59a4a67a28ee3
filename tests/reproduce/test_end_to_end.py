"""Every experiment from training to figure, at a tiny size on glyphs; a second call trains and asks nothing."""

import io
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vma.reproduce.pipeline
import vma.training.loop
from tests.helpers.small_experiments import NAMES, reproduce_tiny
from vma.commands.reproduce import reproduce_command
from vma.errors import InputError
from vma.reproduce.pipeline import read_collection

OF_THE_ISSUE = [
    "fig2a-recall", "fig2b-learned-mnist", "fig3-posterior", "fig4a-oneshot", "fig4b-kl-breakdown", "fig5a-classes",
    "fig5b-shots", "table1-gmn", "text-omniglot28", "text-classification", "text-flat-prior", "text-similarities",
    "text-32-classes", "text-crossover", "supp-curves", "estimators",
]  # fmt: skip


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Experiments share their runs."""
    return tmp_path_factory.mktemp("reproduce")


def test_all_experiments_are_there() -> None:
    assert NAMES == OF_THE_ISSUE


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_end_to_end_and_again(
    name: str, shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = reproduce_tiny(name, shared)
    assert f"Numbers: {path}" in capsys.readouterr().out
    found = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert (found["experiment"], found["tiny"], found["command"]) == (
        name,
        True,
        f"vma reproduce {name} --tiny",
    )
    assert found["rows"]
    for row in found["rows"]:
        assert row["text"] or math.isfinite(row["value"])
        assert (path.parent / row["answer"]).exists()
        assert row["updates"] == (0 if name == "text-crossover" else 3)
    picture = np.asarray(Image.open(io.BytesIO(path.with_suffix(".png").read_bytes())).convert("L"))
    assert min(picture.shape) > 300
    assert picture.std() > 5

    def fail(*arguments: object, **options: object) -> None:
        pytest.fail("a second call has nothing to do")

    monkeypatch.setattr(vma.training.loop, "train_run", fail)
    monkeypatch.setattr(vma.reproduce.pipeline, "answer", fail)
    monkeypatch.setattr(vma.reproduce.pipeline, "draw", lambda *arguments: None)
    again = json.loads(reproduce_tiny(name, shared).read_text())
    assert again["rows"] == found["rows"]
    assert "answered before" in capsys.readouterr().out


def test_every_answer_is_read_once(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(path: Path, real: Callable[[Path], bytes] = Path.read_bytes) -> bytes:
        read.append(path.parent.name)
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", counted)
    path = reproduce_tiny("fig3-posterior", shared)
    answers = json.loads(path.read_bytes())["answers"]
    assert read.count("fig3-posterior") == len(answers) > 0


def test_experiments_share_runs(shared: Path) -> None:
    first, second = (reproduce_tiny(name, shared) for name in ("fig3-posterior", "text-classification"))
    assert read_collection(first).models == read_collection(second).models


def test_a_cut_experiment_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = vma.reproduce.pipeline.answer

    def cut(evaluation, *rest, **options):
        if evaluation.name == "nll":
            raise KeyboardInterrupt
        return real(evaluation, *rest, **options)

    with monkeypatch.context() as patch:
        patch.setattr(vma.reproduce.pipeline, "answer", cut)
        with pytest.raises(KeyboardInterrupt):
            reproduce_tiny("fig4a-oneshot", tmp_path)
    assert not (tmp_path / "results" / "fig4a-oneshot.json").exists()
    capsys.readouterr()
    reproduce_tiny("fig4a-oneshot", tmp_path)
    printed = capsys.readouterr().out
    assert "reusing" in printed
    assert "samples: answered before" in printed
    assert "test: 2 parts" in printed


def test_interrupted_training_stops_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(vma.training.loop, "train_run", lambda *arguments, **options: False)
    path = reproduce_tiny("fig5a-classes", tmp_path)
    assert "the same command goes on" in capsys.readouterr().out
    assert not path.exists()


def test_a_given_run_is_used_instead_of_training(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reproduce_tiny("fig3-posterior", shared)
    (folder,) = (shared / "runs").glob("omniglot-fewshot-4-tiny-*")
    monkeypatch.setattr(
        vma.training.loop, "train_run", lambda *arguments, **options: pytest.fail("not needed")
    )
    path = reproduce_tiny("fig4a-oneshot", tmp_path, "--run", f"vma={folder}")
    record = json.loads(path.read_text())
    assert record["models"][0]["run"] == folder.name
    assert record["command"] == f"vma reproduce fig4a-oneshot --run vma={folder.name} --tiny"
    assert str(shared) not in path.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fig5-classes"], "Did you mean 'fig5a-classes'"),
        (["fig3-posterior", "--run", "vma"], "KEY=FOLDER"),
        (["fig3-posterior", "--run", "vma=nowhere"], "There is no run in nowhere"),
        (["fig3-posterior", "--budget", "-1"], "must not be negative"),
    ],
)
def test_mistakes_are_answered(arguments: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        reproduce_command(arguments)


def test_a_run_that_is_not_needed_is_refused(shared: Path) -> None:
    reproduce_tiny("fig3-posterior", shared)
    (folder,) = (shared / "runs").glob("omniglot-fewshot-4-tiny-*")
    with pytest.raises(InputError, match="Unknown run of this experiment 'vae': choose one of vma"):
        reproduce_tiny("fig3-posterior", shared, "--run", f"vae={folder}")


def test_several_processes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="give them by --run"):
        reproduce_tiny("fig3-posterior", tmp_path)


def test_the_list_names_every_experiment_and_its_runs(capsys: pytest.CaptureFixture[str]) -> None:
    reproduce_command(["--list"])
    printed = capsys.readouterr().out
    for name in NAMES:
        assert f" {name} " in printed
    reproduce_command([])
    assert "vma reproduce --list" in capsys.readouterr().out
