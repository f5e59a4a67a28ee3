"""`vma info` of a run, of an exported file and of a model in the box."""

import json
from pathlib import Path

import pytest
from tyro import cli

import vma
from vma.commands.export import export
from vma.commands.info import facts, info
from vma.runs.folder import Run
from vma.storage import read_about


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three updates, with two answers of an evaluation."""
    place = tmp_path_factory.mktemp("runs") / "mine"
    small = {"updates": 3, "model.maps": 8, "picture_minutes": 0, "seed": 7, "validate_every": 2}
    vma.train("glyphs-fewshot", changes=small, folder=place, quiet=True)
    (place / "evaluations").mkdir()
    for samples, value in ((4, 90.0), (1000, 80.04)):
        results = {"nll": {"value": value, "error": 1.26}, "number_of_targets": 512}
        answer = {"samples": samples, "data": {"name": "glyphs", "split": "test"}, "results": results}
        (place / f"evaluations/nll-{samples}.json").write_text(json.dumps(answer))
    return place


def test_a_run_says_its_data_updates_and_likelihood(folder: Path) -> None:
    known = facts(folder)
    last = [row for row in Run(folder).metrics() if "valid_nll" in row][-1]
    assert known["data"] == "glyphs; 40 classes held out for validation"
    assert known["updates"].startswith("3, ")
    assert (known["preset"], known["seed"]) == ("glyphs-fewshot", "7")
    assert "model.maps 8" in known["changed"]
    assert known["NLL"] == f"{last['valid_nll']:.1f} nats: held out, K = 4, after update 2"
    assert known["NLL, evaluated"] == "80.0 ± 1.3 nats: 512 targets of glyphs test, K = 1000"
    assert facts(folder / "model.safetensors") == known


def test_an_exported_file_says_the_same_as_its_run(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli(export, args=[str(folder), str(tmp_path / "mine.safetensors")])
    assert read_about(tmp_path / "mine.safetensors") == facts(folder)
    info(tmp_path / "mine.safetensors")
    shown = capsys.readouterr().out
    assert "80.0 ± 1.3 nats" in shown
    assert "similarity" in shown


def test_a_file_of_which_nothing_is_written_down_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vma.save_model(vma.build_vma(vma.paper_mlp()), tmp_path / "bare.safetensors")
    assert facts(tmp_path / "bare.safetensors") == {}
    info(tmp_path / "bare.safetensors")
    assert "nothing is written down of its training" in capsys.readouterr().out
    assert facts(Path(__file__).parents[1] / "files/perceptron-0.1.safetensors") == {}


def test_a_model_in_the_box_says_what_its_card_says(capsys: pytest.CaptureFixture[str]) -> None:
    info(Path("omniglot-crisp"))
    shown = " ".join(capsys.readouterr().out.split())
    for words in ("45 training alphabets", "12379 and 5304 asleep", "47.0 ± 1.2 nats", "vma train"):
        assert words in shown
