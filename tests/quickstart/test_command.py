"""The first thing that a new user runs, from training to the page, in a few seconds."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from vma import InputError
from vma.cli import run
from vma.quickstart.command import command_of, small_settings
from vma.quickstart.measure import measure
from vma.runs.settings import TrainSettings


def twenty_updates(seed: int, real=small_settings) -> TrainSettings:
    settings = real(seed)
    return replace(settings, model=replace(settings.model, maps=8), updates=20)


def test_an_interrupted_quickstart_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        "vma.quickstart.command.train_run", lambda settings, run: asked.append(run) is not None
    )
    run(["quickstart", "--folder", str(tmp_path)])
    assert len(asked) == 1


def test_the_command_names_what_is_not_as_usual() -> None:
    assert command_of(2.0, 0) == "vma quickstart"
    assert command_of(20.0, 7) == "vma quickstart --minutes 20 --seed 7"


@pytest.mark.parametrize("minutes", ["0", "-1", "nan"])
def test_a_quickstart_of_no_time_is_refused(
    minutes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="needs some minutes"):
        run(["quickstart", "--minutes", minutes, "--folder", str(tmp_path)])
    assert capsys.readouterr().out == ""


def test_quickstart_trains_measures_and_writes_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_default_dtype(torch.float32)
    brief = partial(measure, episodes=2, samples=2, trials=10)
    monkeypatch.setattr("vma.quickstart.command.measure", brief)
    monkeypatch.setattr("vma.quickstart.machine.available_cores", torch.get_num_threads)  # so that it stays
    monkeypatch.setattr("vma.quickstart.machine.load_average", lambda: 0.0)
    monkeypatch.setattr("vma.quickstart.command.small_settings", twenty_updates)
    run(["quickstart", "--minutes", "60", "--folder", str(tmp_path / "first")])
    printed = capsys.readouterr().out
    assert "5-way 1-shot" in printed
    assert "likelihood of new images: 2 of 2" in printed
    assert "*** Trained too briefly: 20 updates, where 1000 are needed" in printed
    assert printed.rstrip().splitlines()[-1].startswith("Next: vma serve omniglot-crisp")
    assert f"The report: {tmp_path / 'first' / 'report.html'}" in printed
    findings = json.loads((tmp_path / "first" / "findings.json").read_text())
    assert findings["training"]["updates"] == findings["training"]["vae_updates"] == 20
    assert findings["unseen_classes"] == 100
    page = (tmp_path / "first" / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 3
    run(["runs", "--root", str(tmp_path)])
    listed = capsys.readouterr().out
    assert "first/vma" in listed
    assert "first/vae" in listed
    with pytest.raises(InputError, match=r"Did you mean .*first.vma"):
        run(["evaluate", str(tmp_path / "first")])
