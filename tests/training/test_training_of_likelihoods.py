"""Training with other likelihoods: blind targets, resumed runs, grey and colour pictures out of a folder."""

import re
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.small_runs import attempt, child, ending, fit, mortal_attempt, small
from vma import InputError, load
from vma.cli import run as vma
from vma.data.picture import FolderOptions
from vma.runs.settings import (
    BlindSettings,
    DataSettings,
    EpisodeSettings,
    OptimiserSettings,
    SleepSettings,
    TrainSettings,
)
from vma.storage import load_model

IN_ORDER = replace(small().model, likelihood="reading-order", context_maps=4, neighbourhood=(5, 3))
BLIND = BlindSettings(1.0, 0.0, 0.5)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_model(folder / "model.safetensors").state_dict()


def test_the_share_of_the_blind_falls_to_its_end() -> None:
    assert [BLIND.share(done) for done in (0.0, 0.25, 0.5, 1.0)] == [1.0, 0.5, 0.0, 0.0]
    assert BlindSettings(0.5, 0.5).share(0.3) == 0.5


def test_blind_targets_mean_nothing_where_pixels_see_no_others() -> None:
    with pytest.raises(InputError, match="see no others, so no target is blind"):
        small(blind=BLIND)


@pytest.mark.parametrize("wrong", [{"start": -0.1}, {"end": 1.5}, {"until": 0.0}])
def test_shares_that_are_none_are_refused(wrong: dict[str, float]) -> None:
    (name,) = wrong
    with pytest.raises(InputError, match=rf"blind\.{name} must be a number .*, not "):
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
    """Where all targets are blind, the context stays as it started; else it learns."""
    adam = OptimiserSettings(name="adam")
    start, seeing, blind = (
        weights(fit(small(model=IN_ORDER, blind=how, updates=n, optimiser=adam), tmp_path / str(i)).folder)
        for i, (how, n) in enumerate(
            [(BlindSettings(1.0, 1.0), 1), (BlindSettings(), 4), (BlindSettings(1.0, 1.0), 4)]
        )
    )
    context = [name for name in start if name.startswith("likelihood.context.")]
    assert len(context) == 4
    assert all(torch.equal(start[name], blind[name]) for name in context)
    assert not any(torch.equal(start[name], seeing[name]) for name in context)
    assert not torch.equal(start["likelihood.last.weight"], blind["likelihood.last.weight"])


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
    assert torch.equal(model.open_memory(path).items, memory.items)
    assert np.isfinite(memory.score(tmp_path / "pictures" / "class1")[0].log_p)


def test_pictures_in_colour_need_a_likelihood_of_colours(tmp_path: Path) -> None:
    put_pictures(tmp_path / "pictures")
    settings = pictures(True)
    with pytest.raises(InputError, match="3 with likelihood='categorical'"):
        fit(replace(settings, model=small().model), tmp_path / "run", data=tmp_path / "pictures")


def test_a_model_in_colour_is_given_colours_alone(tmp_path: Path) -> None:
    put_pictures(tmp_path / "pictures")
    run = fit(replace(pictures(True), updates=2), tmp_path / "run", data=tmp_path / "pictures")
    model, wrong, folder = load(run.folder), FolderOptions(crop=False), tmp_path / "pictures" / "class0"
    memory = model.remember(folder)
    for ask in (model.remember, memory.add, memory.recognise, memory.score):
        with pytest.raises(InputError, match="works in colour: read images with colour=True"):
            ask(folder, options=wrong)
    with pytest.raises(InputError, match=r"has its colours first: give them last"):
        memory.recognise(memory.items[0])


def test_the_commands_and_figures_take_colour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put_pictures(tmp_path / "pictures")
    run = fit(replace(pictures(True), updates=2), tmp_path / "run", data=tmp_path / "pictures")
    monkeypatch.chdir(tmp_path)
    memory, picture = "pictures/class0", "pictures/class1/0.png"
    vma(["imagine", str(run.folder), "--memory", memory, "--n", "2", "--out", "imagined.png"])
    vma(["explain", str(run.folder), picture, "--memory", memory, "--out", "explained.png"])
    vma(["score", str(run.folder), picture, "--memory", memory])
    vma(["recognise", str(run.folder), picture, "--memory", memory])
    show = [
        "data",
        "show",
        "folder",
        "--data",
        "pictures",
        "--part",
        "all",
        "--folder.colour",
        "--size",
        "16",
    ]
    vma([*show, "--out", "sheet.png"])
    for name in ("imagined.png", "explained.png", "sheet.png"):
        colours = np.asarray(Image.open(name).convert("RGB")).reshape(-1, 3).astype(int)
        assert (colours.max(1) - colours.min(1)).max() > 60
    with pytest.raises(InputError, match="works in colour, and the page draws ink"):
        vma(["serve", str(run.folder)])
    assert re.search(r"\(item \d\): ", capsys.readouterr().out)
