"""`vma.train`, `resume` and `sleep`: what the commands do, from Python, on arrays or a dataset."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

import vma
from tests.helpers.small_runs import small
from vma.data import dataset_of
from vma.evaluation import NllOptions, nll, open_run
from vma.runs.checkpoint import latest_progress
from vma.runs.settings import NEVER, SleepSettings
from vma.training.api import with_changes

IMAGES = (np.random.default_rng(0).random((40, 16, 16)) < 0.2).astype(float)
LABELS = [f"class {i // 4}" for i in range(40)]
CHANGES = {
    "updates": 3, "model.maps": 8, "episode.classes": 2, "episode.targets": 2, "episode.shots": 2,
    "data.held_out": 4, "picture_minutes": 0,
}  # fmt: skip


def test_arrays_and_a_dataset_of_them_give_the_same_run(tmp_path: Path) -> None:
    data = dataset_of(IMAGES, LABELS)
    one = vma.train("glyphs-fewshot", IMAGES, LABELS, changes=CHANGES, folder=tmp_path / "one", quiet=True)
    two = vma.train("glyphs-fewshot", data, changes=CHANGES, folder=tmp_path / "two", quiet=True)
    first, second = load_file(one.model_file), load_file(two.model_file)
    assert all(first[name].equal(second[name]) for name in first.keys() | second.keys())
    assert one.settings().data.name == "arrays"  # so that the preset's own data is never taken for it
    with pytest.raises(vma.InputError, match="Unknown dataset 'arrays'"):
        vma.resume(one.folder, quiet=True)
    assert one.settings().model.maps == 8
    assert latest_progress(one).update == 3
    memory = vma.load(one.folder).remember(IMAGES[:4], LABELS[:4])
    assert memory.classes == ("class 0",)


def test_a_run_goes_on_and_sleeps(tmp_path: Path) -> None:
    run = vma.train("glyphs-fewshot", IMAGES, LABELS, changes=CHANGES, folder=tmp_path / "run", quiet=True)
    vma.resume(run.folder, IMAGES, LABELS, updates=5, quiet=True)
    assert latest_progress(run).update == 5
    asleep = vma.sleep(
        run.folder, IMAGES, LABELS, updates=2, settings=SleepSettings(dreams=4, classes=(2,)), quiet=True
    )
    assert latest_progress(asleep).asleep_since == 5
    assert latest_progress(asleep).update == 7


@pytest.mark.parametrize("other", [(1 - IMAGES, LABELS), (IMAGES, LABELS[::-1])], ids=["images", "labels"])
def test_a_run_does_not_go_on_with_other_data(tmp_path: Path, other: tuple[np.ndarray, list[str]]) -> None:
    run = vma.train("glyphs-fewshot", IMAGES, LABELS, changes=CHANGES, folder=tmp_path / "run", quiet=True)
    before = run.settings_file.read_bytes()
    with pytest.raises(vma.InputError, match="trained on other images or labels"):
        vma.resume(run.folder, *other, updates=5, quiet=True)
    assert run.settings_file.read_bytes() == before


def test_a_refused_resume_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    run = vma.train("glyphs-fewshot", IMAGES, LABELS, changes=CHANGES, folder=tmp_path / "run", quiet=True)
    before = run.settings_file.read_bytes()
    run.checkpoint_file.write_bytes(b"damaged")
    with pytest.raises(vma.InputError):
        vma.resume(run.folder, IMAGES, LABELS, updates=5, quiet=True)
    assert run.settings_file.read_bytes() == before


def test_a_run_on_arrays_is_evaluated_on_a_dataset_of_ones_own(tmp_path: Path) -> None:
    run = vma.train("glyphs-fewshot", IMAGES, LABELS, changes=CHANGES, folder=tmp_path / "run", quiet=True)
    with pytest.raises(vma.InputError, match=r"open_run\(run, data=DATASET\)"):
        open_run(run)
    trained = open_run(run, data=dataset_of(1 - IMAGES, LABELS, name="mine"))
    assert trained.about.data.name == "mine"
    assert nll(trained, NllOptions(episodes=1, samples=2)).results().nll.value > 0


def test_minutes_alone_end_a_run() -> None:
    assert with_changes(small(), {"minutes": 2, "updates": NEVER}).minutes == 2.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"modl.maps": 8}, "Unknown setting 'modl'"),
        ({"model.map": 8}, "Unknown setting 'model.map'.*Did you mean 'model.maps'"),
        ({"updates.more": 8}, "The setting 'updates' has no parts"),
        ({"updates": "many"}, "wrong type"),
        ({"samples": 0}, "samples must be a whole number from 1"),
        ({"samples": 1}, "needs K >= 2"),
    ],
)
def test_changes_that_make_no_sense_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(vma.InputError, match=message):
        with_changes(small(), changes)


def test_labels_without_images_and_unknown_presets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(vma.InputError, match="Labels belong to arrays"):
        vma.train("glyphs-fewshot", dataset_of(IMAGES, LABELS), LABELS, folder=tmp_path / "run")
    with pytest.raises(vma.InputError, match="Did you mean 'glyphs-fewshot'"):
        vma.train("glyphs-fewhsot")
