"""What is trained for a budget: which presets, for how long, in which folder; and what is evaluated."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.helpers.small_runs import fit
from vma.data import FolderOptions
from vma.errors import InputError
from vma.reproduce import controls, mnist, sweeps
from vma.reproduce.experiment import Needed, Scale
from vma.reproduce.registry import EXPERIMENTS
from vma.reproduce.run_store import (
    TRAINING_SHARE,
    RunStore,
    chosen,
    folder_name,
    given_run,
    minutes_each,
    obtain_run,
    settings_of,
    tiny,
)
from vma.runs.belonging import is_trained
from vma.runs.checkpoint import Progress, header_of, read_progress, save_checkpoint
from vma.runs.folder import Run
from vma.runs.presets import PRESETS
from vma.runs.settings import NEVER, SleepSettings, TrainSettings
from vma.storage import load_model, save_model
from vma.warps import WarpSettings

HERE = RunStore(Path("runs"))
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
    assert folder_name(replace(settings, threads=1, log_every=7, picture_minutes=0.0), "", False) == name
    others = {
        folder_name(replace(settings, **change), "", False)
        for change in (
            {"updates": 7}, {"minutes": 3.0}, {"minutes": 4.0}, {"sleep": SleepSettings(share=0.1)},
            {"sleep": SleepSettings(dreams=7)}, {"warps": WarpSettings(shift=0.1)}, {"warp_awake": True},
        )
    }  # fmt: skip
    assert len(others - {name}) == 7
    flat = folder_name(controls.flat_prior(settings), "flat-prior", False)
    assert flat.startswith("omniglot-fewshot-4-flat-prior-")
    assert flat[-6:] != name[-6:]
    assert len({folder_name(change(settings), "", False) for change in (
        controls.flat_prior, controls.cosine, controls.inner_product, controls.many_classes)}) == 4  # fmt: skip


@pytest.mark.parametrize(
    ("preset", "folder"),
    [
        ("omniglot-fewshot-4-fast", "omniglot-fewshot-4-fast-1a449c"),
        ("glyphs-fewshot", "glyphs-fewshot-726ccc"),
        ("mnist-recall", "mnist-recall-0a92f9"),
    ],
)
def test_runs_made_before_options_of_folders_changed_are_still_found(preset: str, folder: str) -> None:
    assert folder_name(PRESETS[preset], "", False) == folder
    own = replace(PRESETS[preset].data.folder, level=False, crop=False)
    data = replace(PRESETS[preset].data, folder=own)
    assert folder_name(replace(PRESETS[preset], data=data), "", False) == folder
    names = [
        folder_name(replace(PRESETS[preset], data=replace(data, name="folder", folder=options)), "", False)
        for options in (own, FolderOptions())
    ]
    assert len({folder, *names}) == 3


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


SCALES = (Scale(), Scale(budget=10.0), Scale(updates=50), Scale(tiny=True), Scale(budget=10.0, tiny=True))


@pytest.mark.parametrize("scale", SCALES, ids=["paper", "minutes", "updates", "tiny", "tiny and fast"])
def test_the_fast_models_with_addresses_sleep_and_no_others(scale: Scale) -> None:
    for experiment in EXPERIMENTS.values():
        for need in experiment.needs.values():
            settings = settings_of(need, scale, HERE, 1.0 if scale.budget else 0.0)
            kept = PRESETS[settings.preset].sleep.share if experiment.name != "estimators" else 0.0
            assert settings.sleep.share == kept
            assert not kept or (settings.model.model == "vma" and settings.preset.endswith("-fast"))
            assert settings.warps.any == (kept > 0)


def test_a_tiny_run_sleeps_as_a_large_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scale, store = Scale(budget=1.0, tiny=True), RunStore(tmp_path, device="cpu", threads=1)
    run = obtain_run(NEED, scale, store, 1.0)
    assert run is not None
    awake, slept = (read_progress(path) for path in (run.checkpoint_file, run.sleep_file))
    assert (awake.update, slept.update, slept.asleep_since) == (3, 4, 3)
    assert is_trained(run)
    assert obtain_run(NEED, scale, store, 1.0) == run
    assert f"reusing {run.folder}" in capsys.readouterr().out


def test_omniglot28_falls_back_to_its_stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VMA_DATA", raising=False)
    need, store = Needed("omniglot28-learned-256"), RunStore(tmp_path, data=tmp_path)
    assert settings_of(need, Scale(), store, 0.0).data.name == "omniglot28-stand-in"
    (tmp_path / "chardata.mat").touch()
    assert settings_of(need, Scale(), store, 0.0).data.name == "omniglot28"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[TrainSettings, Run, bool]]:
    """What is asked of training instead of being trained."""
    calls: list[tuple[TrainSettings, Run, bool]] = []
    monkeypatch.setattr(
        "vma.training.loop.train_run",
        lambda settings, run, resume, **options: calls.append((settings, run, resume)) is None,
    )
    return calls


def obtain(settings: TrainSettings, root: Path) -> Run | None:
    """`obtain_run` for a need that comes to these settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vma.reproduce.run_store.settings_of", lambda *arguments: settings)
        return obtain_run(
            Needed("omniglot-vae"), Scale(tiny=True), RunStore(root, threads=1), settings.minutes
        )


VAE = tiny(PRESETS["omniglot-vae"])


@pytest.mark.parametrize(
    "other",
    [replace(VAE, updates=2), replace(VAE, updates=9), replace(VAE, updates=NEVER, minutes=1e-6)],
    ids=["fewer updates", "more updates", "minutes"],
)
def test_a_run_of_another_length_is_another_run(
    other: TrainSettings, asked: list[tuple[TrainSettings, Run, bool]], tmp_path: Path
) -> None:
    run = fit(VAE, tmp_path / folder_name(VAE, "", True))
    assert obtain(VAE, tmp_path) == run
    assert asked == []
    another = obtain(other, tmp_path)
    assert another != run
    assert asked == [(other, another, False)]


def test_an_unfinished_run_is_resumed_with_its_own_settings(
    asked: list[tuple[TrainSettings, Run, bool]], tmp_path: Path
) -> None:
    wanted = replace(VAE, updates=9)
    run = fit(VAE, tmp_path / folder_name(wanted, "", True))
    run.keep_settings(replace(run.settings(), updates=9, threads=2))
    assert not is_trained(run)
    assert not is_trained(Run(tmp_path / "nowhere"))
    assert obtain(replace(wanted, threads=1), tmp_path) == run
    assert asked == [(replace(run.settings(), threads=1), run, True)]


def test_a_run_is_trained_when_its_sleep_has_come_to_its_end(tmp_path: Path) -> None:
    settings = settings_of(NEED, Scale(budget=1.0, tiny=True), RunStore(tmp_path, threads=1), 1.0)
    run = fit(replace(settings, updates=3, sleep=SleepSettings()), tmp_path / "run")
    run.keep_settings(replace(run.settings(), updates=8, sleep=settings.sleep))
    for update, trained in ((7, False), (8, True)):
        progress = Progress(update, 1.0, 6, 0.75)
        save_checkpoint(run.sleep_file, progress, {}, [], torch.zeros(1))
        assert not is_trained(run)  # killed before its model was written
        save_model(load_model(run.model_file), run.model_file, notes=header_of(progress))
        assert is_trained(run) == trained
    run.model_file.unlink()
    assert not is_trained(run)


def test_a_run_that_went_on_with_other_settings_is_refused(
    asked: list[tuple[TrainSettings, Run, bool]], tmp_path: Path
) -> None:
    run = fit(VAE, tmp_path / folder_name(VAE, "", True))
    run.keep_settings(replace(run.settings(), updates=9))
    with pytest.raises(InputError, match="has gone on with other settings than it was started with: move it"):
        obtain(VAE, tmp_path)
    assert asked == []


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
