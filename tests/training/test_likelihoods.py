"""Training with other likelihoods: blind targets, resumed runs, grey and colour pictures out of a folder."""

import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.training.small import attempt, child, ending, fit, mortal_attempt, small
from vma import VMA, InputError, load
from vma.data.folder import FolderOptions
from vma.storage import load_model
from vma.training.settings import BlindSettings, DataSettings, EpisodeSettings, SleepSettings, TrainSettings

IN_ORDER = replace(small().model, likelihood="reading-order", context_maps=4, neighbourhood=(5, 3))
BLIND = BlindSettings(1.0, 0.0, 0.5)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_model(folder / "model.safetensors").state_dict()


def test_the_share_of_the_blind_falls_to_its_end() -> None:
    assert [BLIND.share(done) for done in (0.0, 0.25, 0.5, 1.0)] == [1.0, 0.5, 0.0, 0.0]
    assert BlindSettings(0.5, 0.5).share(0.3) == 0.5


@pytest.mark.parametrize("wrong", [{"start": -0.1}, {"end": 1.5}, {"until": 0.0}])
def test_shares_that_are_none_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="shares"):
        BlindSettings(**wrong)


@pytest.mark.parametrize("count", [3, 9])
def test_a_run_in_order_that_was_killed_goes_on_bit_for_bit_and_sleeps(count: int, tmp_path: Path) -> None:
    sleep = SleepSettings(share=0.4, dreams=8)
    settings = small(model=IN_ORDER, blind=BLIND, sleep=sleep, updates=10, validate_every=5)
    whole, folder = fit(settings, tmp_path / "whole"), tmp_path / "killed"
    assert ending(child(mortal_attempt, folder, "replace", count, settings)) == -signal.SIGKILL
    assert ending(child(attempt, folder, settings)) == 0
    first, second = weights(whole.folder), weights(folder)
    assert [name for name in first if not torch.equal(first[name], second[name])] == []
    assert any(name.startswith("likelihood.context.") for name in first)
    assert "dream_log_q_a" in whole.metrics()[-1]


def test_the_blind_change_what_is_learned(tmp_path: Path) -> None:
    seeing, blind = (
        weights(fit(small(model=IN_ORDER, blind=how, updates=4), tmp_path / str(i)).folder)
        for i, how in enumerate((BlindSettings(), BlindSettings(1.0, 1.0)))
    )
    start = VMA(IN_ORDER).state_dict()
    first = "likelihood.context.first.weight"
    assert not torch.equal(seeing[first], blind[first])
    assert start[first].shape == blind[first].shape


def put_pictures(folder: Path, classes: int = 8, each: int = 6) -> None:
    """Discs on white paper: a class is a colour and a place."""
    draw = np.random.default_rng(0)
    rows, columns = np.mgrid[:16, :16]
    for label in range(classes):
        colour, centre = draw.integers(0, 200, 3), draw.integers(5, 11, 2)
        for number in range(each):
            at = centre + draw.integers(-1, 2, 2)
            picture = np.full((16, 16, 3), 255, np.uint8)
            picture[(rows - at[0]) ** 2 + (columns - at[1]) ** 2 < 16] = colour
            (folder / f"class{label}").mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(folder / f"class{label}" / f"{number}.png")


def pictures(colour: bool) -> TrainSettings:
    model = replace(small().model, likelihood="categorical", levels=4)
    options = FolderOptions(colour=colour, binarize=None, held_out=0.25)
    return small(
        model=model,
        data=DataSettings("folder", size=16, held_out=3, folder=options),
        episode=EpisodeSettings(classes=2, targets=2, shots=2),
        updates=60,
        picture_minutes=0.001,
    )


@pytest.mark.parametrize("colour", [False, True])
def test_pictures_of_a_folder_are_learned_and_drawn(tmp_path: Path, colour: bool) -> None:
    put_pictures(tmp_path / "pictures")
    run = fit(pictures(colour), tmp_path / "run", data=tmp_path / "pictures")
    rows = run.metrics()
    assert rows[-1]["nll"] < 0.85 * rows[0]["nll"]
    assert (run.folder / "samples.png").exists()
    model = load(run.folder)
    assert model.config.channels == (3 if colour else 1)
    memory = model.remember(tmp_path / "pictures" / "class0")
    drawn = memory.imagine(4, seed=1)
    assert drawn.images.shape == (4, *model.config.image_shape)
    levels = drawn.images * 3
    torch.testing.assert_close(levels, levels.round())
    path = tmp_path / "memory.safetensors"
    memory.save(path)
    assert torch.equal(model.recall(path).items, memory.items)
    assert np.isfinite(memory.score(tmp_path / "pictures" / "class1")[0].log_p)


def test_pictures_in_colour_need_a_likelihood_of_colours(tmp_path: Path) -> None:
    put_pictures(tmp_path / "pictures")
    settings = pictures(True)
    with pytest.raises(InputError, match="3 with likelihood='categorical'"):
        fit(replace(settings, model=small().model), tmp_path / "run", data=tmp_path / "pictures")


def test_a_model_in_colour_is_given_colours_alone(tmp_path: Path) -> None:
    put_pictures(tmp_path / "pictures")
    run = fit(replace(pictures(True), updates=2), tmp_path / "run", data=tmp_path / "pictures")
    with pytest.raises(InputError, match="works in colour: read images with colour=True"):
        load(run.folder).remember(tmp_path / "pictures" / "class0", options=FolderOptions())
