"""The first thing that a new user runs, from training to the page, in a few seconds."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

import vma.quickstart
import vma.report
from vma.cli import run
from vma.training.settings import TrainSettings


def twenty_updates(seed: int, real=vma.quickstart.small_settings) -> TrainSettings:
    settings = real(seed)
    return replace(settings, model=replace(settings.model, maps=8), updates=20)


def test_an_interrupted_quickstart_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr("vma.quickstart.train", lambda settings, run: asked.append(run) is not None)
    run(["quickstart", "--folder", str(tmp_path)])
    assert len(asked) == 1


def test_quickstart_trains_measures_and_writes_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_default_dtype(torch.float32)
    brief = partial(vma.report.measure, episodes=2, samples=2, trials=10)
    monkeypatch.setattr(vma.report, "measure", brief)
    monkeypatch.setattr(vma.quickstart, "small_settings", twenty_updates)
    run(["quickstart", "--minutes", "60", "--folder", str(tmp_path / "first")])
    printed = capsys.readouterr().out
    assert "5-way 1-shot" in printed
    assert f"The report: {tmp_path / 'first' / 'report.html'}" in printed
    findings = json.loads((tmp_path / "first" / "findings.json").read_text())
    assert findings["training"]["updates"] == findings["training"]["vae_updates"] == 20
    assert findings["unseen_classes"] == 100
    page = (tmp_path / "first" / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 3
