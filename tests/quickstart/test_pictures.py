"""What the report's pictures show: chosen by rule, asked of the model, and repeated from the seed."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

import vma
from tests.quickstart.made import CONFIG, SIDE, dataset, trained
from vma.data import load_dataset
from vma.data.samplers import EpisodeSampler
from vma.evaluation import SamplesOptions
from vma.memory import Memory
from vma.plotting.grids import one_shot_png
from vma.quickstart.pictures import Pictures, beside, from_the_box, lookups, one_shot


def test_pictures_are_small_pngs_that_show_something(pictures: Pictures) -> None:
    for content in (pictures.samples, pictures.addressing, pictures.curves):
        assert content is not None
        assert len(content) < 150_000
        picture = Image.open(io.BytesIO(content))
        picture.load()
        assert picture.format == "PNG"
        assert picture.width > 1000
        assert np.asarray(picture.convert("L")).std() > 5


def test_pictures_repeat_from_the_seed() -> None:
    torch.manual_seed(0)
    run = trained(vma.build_vma(CONFIG))
    shown = [one_shot(run, SamplesOptions(rows=2, samples=2, real=3, seed=s)) for s in (3, 3, 4)]
    first, second, other = map(one_shot_png, shown)
    assert first == second != other


def test_the_shipped_model_imagines_from_the_same_items() -> None:
    torch.manual_seed(0)
    run, shipped = trained(vma.build_vma(CONFIG)), vma.build_vma(CONFIG)
    shown, alone = beside(run, shipped, seed=3), beside(run, None, seed=3)
    assert shown.others is not None
    title, theirs = shown.others
    assert title == "omniglot-crisp, from the box"
    assert np.array_equal(shown.templates, alone.templates)
    assert theirs.shape == shown.imagined.shape
    assert not np.array_equal(theirs, shown.imagined)
    assert len(one_shot_png(shown)) > len(one_shot_png(alone)) / 2


def test_the_model_in_the_box_fits_the_invented_characters() -> None:
    torch.set_default_dtype(torch.float32)
    assert from_the_box().image_shape == load_dataset("glyphs", "test").size


def test_drawings_of_a_row_are_different_images_of_one_class() -> None:
    shown = one_shot(trained(vma.build_vma(CONFIG)), SamplesOptions(rows=8, samples=1, real=3))
    rows = np.concatenate((shown.templates, shown.real), axis=1)
    labels = rows[:, :, 0] @ 2.0 ** np.arange(SIDE)  # the first line of an image says its class
    assert rows.shape == (8, 4, SIDE, SIDE)
    assert (labels == labels[:, :1]).all()
    assert len(np.unique(rows.reshape(32, -1), axis=0)) == 32
    assert len(np.unique(labels[:, 0])) == 8


def test_targets_to_look_up_are_chosen_by_entropy_and_the_last_misses_its_class() -> None:
    model, episode = vma.build_vma(CONFIG), EpisodeSampler(dataset()).episode(0).tensors()
    first, median, last, without = lookups(trained(model), episode, samples=3)
    entropies = [float(-(each.q * np.log(each.q)).sum()) for each in (first, median, last)]
    everything = model.posterior(episode.targets, Memory.of(episode.memory)).entropy().detach()
    assert entropies == pytest.approx(
        [float(everything.min()), float(everything.sort().values[16]), float(everything.max())]
    )
    assert np.array_equal(without.target, first.target)
    assert not without.kept[episode.memory_labels.numpy() == without.label].any()
    assert without.q.sum() == pytest.approx(1)
    assert without.q[~without.kept].sum() == 0
