"""What an answer says of its model: every setting, what differs from the preset, and how long it was trained."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch

from tests.helpers.small_runs import fit, small, tiny
from vma.evaluation.answers import Answer
from vma.evaluation.episodes import NllOptions, nll
from vma.evaluation.json_values import plain
from vma.evaluation.tables import title
from vma.evaluation.trained_run import describe_model, open_run, overrides
from vma.runs.checkpoint import Progress, read_progress, save_checkpoint
from vma.runs.folder import settings_from
from vma.runs.presets import PRESETS
from vma.runs.settings import NEVER, SleepSettings
from vma.storage import load_model, save_model

SLEEP = SleepSettings(share=0.25, dreams=4)


def test_overrides_are_what_differs_from_the_preset() -> None:
    preset = PRESETS["omniglot-fewshot-4-fast"]
    assert overrides(preset) == {}
    changed = replace(
        preset,
        optimiser=replace(preset.optimiser, rate=0.5, schedule="constant"),
        data=replace(preset.data, folder=replace(preset.data.folder, crop=False)),
        sleep=replace(preset.sleep, classes=(4, 8)),
        seed=3,
    )
    assert overrides(changed) == {
        "optimiser.rate": 0.5, "optimiser.schedule": "constant", "data.folder.crop": False, "sleep.classes": (4, 8),
        "seed": 3,
    }  # fmt: skip


def test_all_settings_are_overrides_of_an_unknown_preset() -> None:
    found = overrides(small())
    assert (found["preset"], found["optimiser.clip"], found["model.latent"]) == ("small", 50.0, 4)
    whole = msgspec.to_builtins(small())
    parts = ("model", "data", "episode", "optimiser", "sleep", "warps", "blind", "search")
    of_data = len(whole["data"]) - 1 + len(whole["data"]["folder"])
    inside = sum(of_data if part == "data" else len(whole[part]) for part in parts)
    assert len(found) == len(whole) - len(parts) + inside


def test_an_answer_holds_all_that_its_run_can_be_repeated_from(tmp_path: Path) -> None:
    wanted = replace(tiny("glyphs-fewshot"), estimator="rws", seed=5)
    run = fit(wanted, tmp_path / "run")
    evaluation = nll(open_run(run), NllOptions(episodes=1, samples=2))
    about = json.loads(json.dumps(evaluation.about))["model"]
    assert settings_from(about["settings"]) == run.settings()
    assert about["preset"] == "glyphs-fewshot"
    assert about["overrides"] == {
        "model.maps": 8, "model.hidden": [8], "model.latent": 4, "model.matching": 8, "episode.classes": 2,
        "episode.targets": 2, "episode.shots": 3, "estimator": "rws", "updates": 2, "seed": 5, "threads": 1,
        "log_every": 1, "validate_every": 2, "picture_minutes": 0.0,
    }  # fmt: skip


def test_a_run_that_has_slept_counts_both_kinds_of_updates(tmp_path: Path) -> None:
    run = fit(small(updates=8, sleep=SLEEP), tmp_path / "run")
    trained = open_run(run)
    about = trained.about.model
    assert (about.updates, about.sleep_updates) == (6, 2)
    assert trained.model.config.tied  # the model of the end of the sleep
    evaluation = nll(trained, NllOptions(episodes=1, samples=2))
    said = title(Answer("nll", evaluation.about, None))
    assert said == "small, 6 updates and 2 asleep, on glyphs test, K = 2, protocol disjoint"


def test_a_run_that_has_not_slept_says_nothing_of_sleep(tmp_path: Path) -> None:
    run = fit(small(updates=6), tmp_path / "run")
    about = open_run(run).about
    assert (about.model.updates, about.model.sleep_updates) == (6, 0)
    assert about.model.hours == round(read_progress(run.checkpoint_file).seconds / 3600, 4)
    assert title(Answer("samples", plain(about), None)) == "small, 6 updates, on glyphs test"


@pytest.mark.parametrize(
    ("updates", "minutes", "slept", "counted"),
    [
        (8, 0.0, Progress(7, 7200.0, 6, 0.75), False),
        (8, 0.0, Progress(8, 7200.0, 6, 0.75), True),
        (NEVER, 120.5, Progress(8, 7200.0, 6, 0.75), False),
        (NEVER, 120.0, Progress(8, 7200.0, 6, 0.75), True),
    ],
    ids=["updates left", "updates done", "minutes left", "minutes over"],
)
def test_a_sleep_counts_when_it_is_complete(
    updates: int, minutes: float, slept: Progress, counted: bool, tmp_path: Path
) -> None:
    """Where the model does not say itself how long it was trained, as in older versions."""
    run = fit(small(updates=6), tmp_path / "run")
    awake = read_progress(run.checkpoint_file)
    model = load_model(run.model_file)
    save_model(model, run.model_file)
    save_checkpoint(run.sleep_file, slept, {}, [], torch.zeros(1))
    run.keep_settings(small(updates=updates, minutes=minutes, sleep=SLEEP))
    about = describe_model(run, run.settings(), model)
    assert (about.updates, about.sleep_updates) == (6, 2 if counted else 0)
    assert about.hours == (2.0 if counted else round(awake.seconds / 3600, 4))
