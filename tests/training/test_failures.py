"""What can go wrong with a run is said in one sentence, and nothing is overwritten."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.helpers.small_runs import fit, losses, small
from vma import InputError
from vma.runs.folder import Run, settings_from
from vma.runs.settings import DataSettings, EpisodeSettings, OptimiserSettings, TrainSettings
from vma.training.loop import train_run


@pytest.fixture
def finished(tmp_path: Path) -> Run:
    return fit(small(updates=10), tmp_path / "run")


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_folder_with_a_run_is_not_overwritten(finished: Run) -> None:
    before = content(finished.folder)
    with pytest.raises(InputError, match="already holds a run: continue it with 'vma train --resume"):
        train_run(small(threads=0), finished)  # not quiet: TensorBoard must not write either
    assert content(finished.folder) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"data": DataSettings("glyphs", size=16, held_out=10_000)},
        {"episode": EpisodeSettings(classes=500, targets=2, shots=2)},
        {"episode": EpisodeSettings(classes=4, targets=200, shots=2)},
    ],
)
def test_too_few_images_name_the_options(changes: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--data.held-out, --episode.classes, --episode.targets"):
        fit(small(**changes), tmp_path / "run")


def test_a_run_in_use_is_left_alone(finished: Run) -> None:
    before = content(finished.folder)
    with finished.lock():
        assert finished.is_locked()
        with pytest.raises(InputError, match="in use by another process"):
            fit(small(), finished.folder, resume=True)
    assert not finished.is_locked()
    assert content(finished.folder) == before


def test_a_run_of_a_newer_version_is_refused(finished: Run) -> None:
    record = json.loads(finished.settings_file.read_text())
    finished.settings_file.write_text(json.dumps({**record, "version": 99}))
    with pytest.raises(InputError, match=r"newer vma .*update vma"):
        finished.settings()


def test_a_full_disk_keeps_the_last_checkpoint(finished: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    before = finished.checkpoint_file.read_bytes()
    real = os.fsync

    def full(handle: int) -> None:
        if "checkpoint" in Path(f"/proc/self/fd/{handle}").readlink().name:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"Cannot write .*checkpoint.safetensors: No space left on device"):
        fit(small(updates=20), finished.folder, resume=True)
    assert finished.checkpoint_file.read_bytes() == before
    monkeypatch.undo()
    assert [row["update"] for row in fit(small(updates=20), finished.folder, resume=True).metrics()][-1] == 20


def test_a_full_disk_while_writing_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def full(self: Path, *arguments: object, **options: object) -> object:
        if self.name == "metrics.jsonl" and "a" in arguments:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(InputError, match=r"Cannot write .*metrics.jsonl: No space left on device"):
        fit(small(), tmp_path / "run")


def test_a_gradient_that_is_not_finite_does_not_reach_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fit(small(updates=8), tmp_path / "run")
    before = run.checkpoint_file.read_bytes()
    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", lambda parameters, limit: torch.tensor(torch.nan))
    with pytest.raises(
        InputError, match=r"The loss or its gradient is not finite at update 8 .* at update 8"
    ):
        fit(small(updates=20), run.folder, resume=True)
    assert run.checkpoint_file.read_bytes() == before


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="Cannot write to the run folder"):
        fit(small(), tmp_path / "file" / "run")


def test_a_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *arguments: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(InputError, match=r"Cannot write to the run folder .*: Permission denied"):
        fit(small(), tmp_path / "run")


def test_a_loss_that_is_not_finite_names_step_terms_and_checkpoint(tmp_path: Path) -> None:
    run = fit(small(updates=8), tmp_path / "run")
    before = run.checkpoint_file.read_bytes()
    rates = OptimiserSettings(name="muon", rate=1e6, muon_rate=1e6, average=0.9)
    wild = small(updates=500, optimiser=rates, checkpoint_every=1000)
    with pytest.raises(
        InputError, match=r"not finite at update \d+ \(means: log_p_a .*log_p_x .*at update 8"
    ) as e:
        fit(wild, run.folder, resume=True)
    assert "Lower the rate" in str(e.value)
    assert run.checkpoint_file.read_bytes() == before


def test_a_damaged_checkpoint(finished: Run) -> None:
    finished.checkpoint_file.write_bytes(finished.checkpoint_file.read_bytes()[:-5])
    with pytest.raises(InputError, match="not a checkpoint file, or is damaged"):
        fit(small(), finished.folder, resume=True)
    finished.model_file.replace(finished.checkpoint_file)
    with pytest.raises(InputError, match="not one of a vma checkpoint"):
        fit(small(), finished.folder, resume=True)


def test_a_checkpoint_of_other_settings(finished: Run) -> None:
    other = small(model=replace(small().model, latent=5))
    with pytest.raises(InputError, match="does not fit the settings of its run"):
        fit(other, finished.folder, resume=True)


def test_a_metrics_line_cut_short_is_written_again(finished: Run) -> None:
    with finished.metrics_file.open("a") as file:
        file.write('{"update": 15, "nl')
    run = fit(small(updates=15), finished.folder, resume=True)
    assert [row["update"] for row in run.metrics()] == [5, 10, 15]


def test_no_run_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no run in"):
        Run(tmp_path).settings()


def test_settings_survive_the_file(finished: Run) -> None:
    assert finished.settings() == small(updates=10)
    record = finished.record()
    assert {"vma", "torch", "python", "revision", "started"} <= record.keys()
    assert losses(finished)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"update": 3}, "Unknown setting 'update'.*Did you mean 'updates'"),
        ({"optimiser": {"ratte": 3}}, "Unknown setting 'optimiser.ratte'.*Did you mean 'optimiser.rate'"),
        ({"model": {"mapps": 3}}, "Unknown setting 'model.mapps'"),
        ({"updates": "many"}, r"wrong type.*updates"),
        ({"optimiser": {"name": "sgd"}}, r"wrong type.*optimiser.name"),
        ({"estimator": "vimcoo"}, "Unknown estimator"),
        ({"latent_gradient": "x"}, "Unknown latent gradient"),
        ({"updates": 0}, "updates must be a whole number from 1 to 1000000000, not 0"),
        ({"minutes": -1.0}, "minutes must be a number from 0.0 to"),
        (
            {"optimiser": {"muon_rate": float("nan")}},
            "optimiser.muon_rate must be a number above 0.0 .*not nan",
        ),
        ({"samples": 1}, "'vimco' needs K >= 2 samples"),
        ([1], "must be an object"),
        ({"episode": {"shots": 0}}, "episode.shots must be a whole number from 1"),
        ({"optimiser": {"rate": 0.0}}, "optimiser.rate must be a number above 0.0 and at most"),
        (
            {"optimiser": {"average": 1.0}},
            "optimiser.average must be a number from 0.0 and below 1.0, not 1.0",
        ),
        ({"optimiser": {"clip": -1.0}}, "optimiser.clip must be a number from 0.0"),
    ],
)
def test_bad_settings(values: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        settings_from(values)


def test_mixed_precision_needs_a_device_that_has_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs a GPU"):
        fit(small(precision="bfloat16"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_unknown_device_and_dataset(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Unknown device"):
        train_run(TrainSettings(), Run(tmp_path), device="abacus")
    with pytest.raises(InputError, match="There is no device 'cuda:9'"):
        train_run(TrainSettings(), Run(tmp_path), device="cuda:9")
    assert not Run(tmp_path).settings_file.exists()
    with pytest.raises(InputError, match=r"Unknown dataset 'glyph'.*Did you mean 'glyphs'"):
        fit(small(data=replace(small().data, name="glyph")), tmp_path / "run")
