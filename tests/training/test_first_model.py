"""A run that begins with a trained model: the same weights at first, its own configuration, and sentences."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import vma
from tests.helpers.small_runs import SMALL
from vma.build import build_model
from vma.cli import run as command
from vma.config import ModelConfig
from vma.runs.folder import Run
from vma.runs.settings import DataSettings, OptimiserSettings, TrainSettings
from vma.storage import identity, load_model, save_model
from vma.training.loop import train_run


def small(**changes: Any) -> TrainSettings:
    return replace(SMALL, threads=0, **changes)


STILL = OptimiserSettings(name="adam", rate=1e-60)  # less than single precision can tell from zero


def saved(folder: Path, config: ModelConfig | None = None) -> Path:
    torch.manual_seed(5)
    file = folder / "first.safetensors"
    save_model(build_model(config or small().model).float(), file)
    return file


def trained(settings: TrainSettings, folder: Path) -> Run:
    run = Run(folder)
    train_run(settings, run, quiet=True)
    return run


def test_a_run_begins_with_the_weights_and_the_configuration_of_its_first_model(tmp_path: Path) -> None:
    config = replace(small().model, hidden=(12,), latent=3)
    file = saved(tmp_path, config)
    run = trained(small(start=str(file), optimiser=STILL, updates=1), tmp_path / "run")
    before, after = load_file(file), load_file(run.model_file)
    assert before.keys() == after.keys()
    assert all(before[name].equal(after[name].to(before[name])) for name in before)
    assert run.settings().model == config
    assert run.record()["began_with"] == identity(load_model(file).to(torch.get_default_dtype()))


def test_without_a_first_model_weights_are_others(tmp_path: Path) -> None:
    file = saved(tmp_path)
    run = trained(small(optimiser=STILL, updates=1), tmp_path / "run")
    before, after = load_file(file), load_file(run.model_file)
    assert any(not before[name].equal(after[name].to(before[name])) for name in before)
    assert "began_with" not in run.record()


def test_a_run_goes_on_bit_for_bit_when_its_first_model_is_gone(tmp_path: Path) -> None:
    file = saved(tmp_path)
    settings = small(start=str(file), optimiser=replace(SMALL.optimiser, schedule="constant"), updates=8)
    whole = trained(settings, tmp_path / "whole")
    part = trained(replace(settings, updates=4), tmp_path / "part")
    file.unlink()
    vma.resume(part.folder, updates=8, quiet=True)
    one, two = load_file(whole.model_file), load_file(part.model_file)
    assert all(one[name].equal(two[name]) for name in one)


def test_a_first_model_in_half_precision_learns_like_any_other(tmp_path: Path) -> None:
    file = saved(tmp_path)
    save_model(load_model(file).half(), file)
    run = trained(small(start=str(file), updates=2), tmp_path / "run")
    weights = [each for each in load_file(run.model_file).values() if each.is_floating_point()]
    assert {each.dtype for each in weights} == {torch.get_default_dtype()}


def test_images_have_the_size_of_the_first_model(tmp_path: Path) -> None:
    file = saved(tmp_path)
    run = trained(
        small(start=str(file), data=DataSettings("glyphs", held_out=20), updates=1), tmp_path / "run"
    )
    assert run.settings().data.size == 16


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"data": DataSettings("glyphs", size=20, held_out=20)},
            "images of 16×16, and glyphs has images of 20×20",
        ),
        ({"start": "nowhere.safetensors"}, "nowhere.safetensors"),
        ({"preset": "glyphs-fewshot"}, "leave out the settings that begin with model, or --start"),
    ],
    ids=["size", "missing", "configuration"],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, changes: dict[str, object], sentence: str
) -> None:
    file = saved(tmp_path, replace(small().model, latent=3))
    with pytest.raises(vma.InputError, match=sentence):
        trained(replace(small(start=str(file), updates=1), **changes), tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_model_in_the_box_is_trained_further_from_the_shell(tmp_path: Path) -> None:
    options = "--start omniglot --updates 1 --sleep.share 0 --episode.classes 2 --data.held-out 4"
    command(["train", "glyphs-fewshot-fast", *options.split(), "--folder", str(tmp_path / "run")])
    settings = Run(tmp_path / "run").settings()
    assert settings.start == "omniglot"
    assert settings.model == vma.load("omniglot").config
    assert vma.load(tmp_path / "run").size == (26, 26)
