"""What is trained for a budget: which presets, for how long, in which folder; and what is evaluated."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.training.small import fit
from vma.errors import InputError
from vma.reproduce import controls, mnist, sweeps
from vma.reproduce.experiment import Needed, Scale
from vma.reproduce.registry import EXPERIMENTS
from vma.reproduce.training import (
    TRAINING_SHARE,
    Place,
    chosen,
    folder_name,
    given_run,
    is_trained,
    minutes_each,
    obtain_run,
    settings_of,
    tiny,
)
from vma.training.checkpoint import read_progress
from vma.training.presets import PRESETS
from vma.training.runs import Run

HERE = Place(Path("runs"))
NEED = Needed("omniglot-fewshot-4")


def test_a_budget_is_divided_over_the_runs_that_are_trained() -> None:
    scale = Scale(budget=60.0)
    assert minutes_each(scale, 3) == pytest.approx(60 * TRAINING_SHARE / 3)
    assert minutes_each(Scale(), 3) == 0
    settings = settings_of(NEED, scale, HERE, minutes_each(scale, 3))
    assert settings.preset == "omniglot-fewshot-4-fast"
    assert settings.minutes == pytest.approx(15)
    assert settings.updates > 1_000_000


def test_updates_instead_of_minutes() -> None:
    settings = settings_of(NEED, Scale(budget=60.0, updates=3000), HERE, 15.0)
    assert (settings.preset, settings.updates, settings.minutes) == ("omniglot-fewshot-4-fast", 3000, 0.0)
    assert settings_of(NEED, Scale(updates=3000), HERE, 0.0) == settings


def test_without_a_budget_the_settings_are_the_papers() -> None:
    assert settings_of(NEED, Scale(), HERE, 0.0) == PRESETS["omniglot-fewshot-4"]


def test_a_small_budget_does_without_some_runs_unless_they_are_given() -> None:
    needs, vma8 = sweeps.SHOTS_SWEEP.needs, Run(Path("vma8"))
    assert list(chosen(needs, {}, Scale(budget=60.0))) == ["vma4", "vae"]
    assert list(chosen(needs, {"vma8": vma8}, Scale(budget=60.0))) == ["vma4", "vma8", "vae"]
    assert list(chosen(needs, {}, Scale(budget=120.0))) == list(chosen(needs, {}, Scale())) == list(needs)
    with pytest.raises(InputError, match="Did you mean 'vma8'"):
        chosen(needs, {"vma9": vma8}, Scale())


@pytest.mark.parametrize(
    ("budget", "samples", "count"),
    [(0.0, 1000, 64), (240.0, 1000, 64), (60.0, 200, 32), (15.0, 50, 16), (1.0, 50, 16)],
)
def test_the_evaluation_fits_the_budget(budget: float, samples: int, count: int) -> None:
    scale = Scale(budget)
    assert (scale.samples(1000), scale.count(64)) == (samples, count)
    assert Scale(budget, fixed=7).samples() == 7


def test_a_folder_is_named_for_what_decides_the_run() -> None:
    settings = PRESETS["omniglot-fewshot-4"]
    name = folder_name(settings, "", False)
    assert name.startswith("omniglot-fewshot-4-")
    assert folder_name(replace(settings, minutes=3.0, updates=7, threads=1), "", False) == name
    flat = folder_name(controls.flat_prior(settings), "flat-prior", False)
    assert flat.startswith("omniglot-fewshot-4-flat-prior-")
    assert flat[-6:] != name[-6:]
    assert len({folder_name(change(settings), "", False) for change in (
        controls.flat_prior, controls.cosine, controls.inner_product, controls.many_classes)}) == 4  # fmt: skip


def test_every_need_is_a_preset_and_shared_ones_have_one_folder() -> None:
    folders = {}
    for experiment in EXPERIMENTS.values():
        for key, need in experiment.needs.items():
            settings = settings_of(need, Scale(budget=10.0), HERE, 1.0)
            folders[experiment.name, key] = folder_name(settings, need.variant, False)
    one = {folders[pair] for pair in [
        ("fig3-posterior", "vma"), ("fig4a-oneshot", "vma"), ("fig4b-kl-breakdown", "4"), ("fig5a-classes", "vma"),
        ("fig5b-shots", "vma4"), ("text-classification", "vma"), ("text-flat-prior", "learned-prior"),
    ]}  # fmt: skip
    assert len(one) == 1
    assert len({folders["estimators", key] for key in EXPERIMENTS["estimators"].needs}) == 8


def test_omniglot28_falls_back_to_its_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VMA_DATA", raising=False)
    need, place = Needed("omniglot28-learned-256"), Place(tmp_path, data=tmp_path)
    assert settings_of(need, Scale(), place, 0.0).data.name == "omniglot28-stand-in"
    (tmp_path / "chardata.mat").touch()
    assert settings_of(need, Scale(), place, 0.0).data.name == "omniglot28"


def test_more_minutes_go_on_with_the_run_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tiny(PRESETS["omniglot-vae"])
    run = fit(settings, tmp_path / folder_name(settings, "", True))
    done = read_progress(run.checkpoint_file)
    assert is_trained(run, settings)
    assert is_trained(run, replace(settings, updates=100, minutes=done.seconds / 60))
    longer = replace(settings, updates=100, minutes=1.0 + done.seconds)
    assert not is_trained(run, longer)
    assert not is_trained(Run(tmp_path / "nowhere"), settings)
    asked = []
    monkeypatch.setattr(
        "vma.training.loop.train",
        lambda settings, run, resume, **options: asked.append((settings, run, resume)) is None,
    )
    monkeypatch.setattr("vma.reproduce.training.settings_of", lambda *arguments: longer)
    assert obtain_run(Needed("omniglot-vae"), Scale(tiny=True), Place(tmp_path), 1.0) == run
    ((resumed, where, resume),) = asked
    assert (resumed.minutes, resumed.updates, where, resume) == (longer.minutes, 100, run, True)
    assert resumed.model == run.settings().model


def test_a_given_run_needs_a_model(tmp_path: Path) -> None:
    run = fit(tiny(PRESETS["omniglot-vae"]), tmp_path / "run")
    assert given_run(f"vae={run.folder}") == ("vae", run)
    run.model_file.unlink()
    with pytest.raises(InputError, match="no saved model"):
        given_run(f"vae={run.folder}")


def test_what_the_paper_says_is_its_numbers() -> None:
    said = {name: experiment.paper for name, experiment in EXPERIMENTS.items()}
    for name, numbers in {
        "fig2a-recall": ("5.55", "2048"), "fig2b-learned-mnist": ("2.5 ± 0.3",), "text-omniglot28": ("103.6",),
        "fig4b-kl-breakdown": ("2.0", "4.5", "28.2", "21.8", "75.1", "69.1"), "text-crossover": ("48",),
        "fig5a-classes": ("68.8", "90.8", "73.4", "144"), "text-classification": ("91 %", "97 %", "77 %", "90 %"),
        "table1-gmn": ("83.3", "45.8", "86.5", "73.9"),
    }.items():  # fmt: skip
        assert all(number in said[name] for number in numbers), name
    assert mnist.SIZES[0] == 256
