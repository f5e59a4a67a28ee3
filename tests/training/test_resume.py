"""Runs survive anything: killed at any moment, they go on to the same losses, bit for bit."""

import os
import random
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.helpers.small_runs import attempt, child, ending, fit, losses, mortal_attempt, small
from vma import ModelConfig
from vma.reproduce.run_store import decisive
from vma.runs.checkpoint import Progress, is_at_its_end, read_progress, share_of_time
from vma.runs.folder import Run
from vma.runs.settings import OptimiserSettings


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return fit(small(), tmp_path_factory.mktemp("whole") / "run")


def assert_same(run: Run, other: Run) -> None:
    assert losses(run) == losses(other)
    for name in ("model_file", "checkpoint_file"):
        one, two = (load_file(getattr(r, name)) for r in (run, other))
        assert one.keys() == two.keys()
        assert [key for key in one if not one[key].equal(two[key])] == []


def test_a_run_can_be_repeated(uninterrupted: Run, tmp_path: Path) -> None:
    assert_same(fit(small(), tmp_path / "again"), uninterrupted)
    rows = uninterrupted.metrics()
    assert [row["update"] for row in rows] == [5, 10, 15, 20, 25, 30]
    assert [row["update"] for row in rows if "valid_nll" in row] == [10, 20, 30]


def test_another_seed_gives_another_run(uninterrupted: Run, tmp_path: Path) -> None:
    assert losses(fit(small(seed=8), tmp_path / "other")) != losses(uninterrupted)


def test_killed_at_random_moments_it_ends_the_same(uninterrupted: Run, tmp_path: Path) -> None:
    """Ten kills at random; an attempt gets a little further or not, and nothing is lost."""
    chance, folder = random.Random(1), tmp_path / "run"
    for _ in range(10):
        process = child(attempt, folder)
        time.sleep(chance.uniform(0.0, 1.5))
        process.kill()
        assert ending(process) in (0, -signal.SIGKILL)
    assert ending(child(attempt, folder)) == 0
    assert_same(Run(folder), uninterrupted)


@pytest.mark.parametrize("moment", ["fsync", "replace", "after replace"])
def test_killed_while_writing_a_file_it_ends_the_same(
    moment: str, uninterrupted: Run, tmp_path: Path
) -> None:
    """Eight kills inside the writing of settings, metrics, checkpoints and models."""
    folder = tmp_path / "run"
    for count in (1, 2, 3, 4, 5, 1, 2, 3):
        assert ending(child(mortal_attempt, folder, moment, count)) == -signal.SIGKILL
    assert ending(child(attempt, folder)) == 0
    assert_same(Run(folder), uninterrupted)
    assert list(folder.glob(".*")) == []


@pytest.mark.parametrize("style", ["paper", "modern"])
@pytest.mark.parametrize("optimiser", ["adam", "muon", "muon-kernels"])
def test_convolutional_networks_go_on_the_same(optimiser: str, style: str, tmp_path: Path) -> None:
    """Kernels lie in memory otherwise than a checkpoint holds them; so must what the optimiser knows of them."""
    settings = small(
        model=ModelConfig(height=16, width=16, maps=8, hidden=(12,), latent=4, matching=8, style=style),
        optimiser=OptimiserSettings(name=optimiser, rate=2e-3, average=0.9),
        updates=12,
    )
    whole = fit(settings, tmp_path / "whole")
    fit(replace(settings, updates=6), tmp_path / "parts")
    assert_same(fit(settings, tmp_path / "parts", resume=True), whole)


# The last updates of the same runs, whole, by the version that wrote the half of each in tests/files.
OLD = {
    "run-0.1": ("nll", [122.0958, 123.3888, 107.9298, 106.5307]),
    "run-learned-0.1": ("nll", [125.3172, 115.0792, 125.5151, 113.3660]),
    "run-asleep-0.1": ("dream_log_q_a", [-2.079038, -2.033638]),
}


@pytest.mark.parametrize("name", OLD)
def test_a_run_of_an_older_version_goes_on_as_it_would_have(name: str, tmp_path: Path) -> None:
    """A run with a memory for each episode, one with a learned memory, and one that was asleep."""
    shutil.copytree(Path(__file__).parents[1] / "files" / name, tmp_path / "run")
    run, (what, values) = Run(tmp_path / "run"), OLD[name]
    rows = fit(run.settings(), run.folder, resume=True).metrics()
    assert [row[what] for row in rows[-len(values) :]] == pytest.approx(values, rel=1e-5)


def test_the_settings_of_an_older_version_mean_what_they_meant() -> None:
    """Its file does not say which layers m is given to: then it was the first alone."""
    settings = Run(Path(__file__).parents[1] / "files/run-0.1").settings()
    assert settings.model.item_layers == "first"
    assert decisive(settings)["model"]["item_layers"] == "first"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_saves_and_goes_on(number: int, uninterrupted: Run, tmp_path: Path) -> None:
    run, settings = Run(tmp_path / "run"), small(checkpoint_every=1000)
    process = child(attempt, run.folder, settings)
    while not run.metrics():
        time.sleep(0.01)
    os.kill(process.pid, number)
    assert ending(process) == 0
    assert run.checkpoint_file.exists()
    fit(settings, run.folder, resume=True)
    assert losses(run) == losses(uninterrupted)


def test_a_run_can_be_made_longer(tmp_path: Path) -> None:
    fit(small(updates=10), tmp_path / "run")
    run = fit(small(updates=20), tmp_path / "run", resume=True)
    assert [row["update"] for row in run.metrics()] == [5, 10, 15, 20]


def test_a_time_budget_ends_with_a_checkpoint_and_the_rate_follows_it(tmp_path: Path) -> None:
    run = fit(small(updates=10**6, minutes=0.03, log_every=1), tmp_path / "run")
    rows = run.metrics()
    assert read_progress(run.checkpoint_file).update == rows[-1]["update"] < 10**6
    assert rows[4]["rate_factor"] > 0.8  # after the warm-up
    assert rows[-1]["rate_factor"] < 0.2
    assert rows[-2]["seconds"] <= 1.8 <= rows[-1]["seconds"]  # 0.03 minutes; lines round to milliseconds


def test_the_least_updates_are_made_though_the_minutes_are_over(tmp_path: Path) -> None:
    run = fit(small(updates=10**6, minutes=1e-6, least_updates=3, log_every=1), tmp_path / "run")
    assert [row["update"] for row in run.metrics()] == [1, 2, 3]


def test_the_share_of_the_time_never_runs_ahead_of_the_least_updates() -> None:
    settings = small(minutes=1.0, least_updates=10)
    assert share_of_time(5, 60.0, settings) == 0.5
    assert share_of_time(20, 30.0, settings) == 0.5
    assert share_of_time(20, 90.0, small()) == 0.0
    assert not is_at_its_end(Progress(9, 600.0), settings)
    assert is_at_its_end(Progress(10, 60.0), settings)


def test_it_is_validated_when_that_is_due(tmp_path: Path) -> None:
    rows = fit(small(updates=12, log_every=5, validate_every=4), tmp_path / "run").metrics()
    assert [row["update"] for row in rows] == [4, 5, 8, 10, 12]
    assert [row["update"] for row in rows if "valid_nll" in row] == [4, 8, 12]
