"""What the report's pictures show: chosen by rule, asked of the model, and repeated from the seed."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

import vma
from tests.quickstart.made import CONFIG, dataset
from vma.data.samplers import EpisodeSampler
from vma.memory import Memory
from vma.plotting.grids import one_shot_png
from vma.quickstart.pictures import Pictures, choose_drawings, lookups, one_shot


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
    model = vma.build_vma(CONFIG)
    shown = [one_shot(model, dataset(), rows=2, samples=2, seed=s) for s in (3, 3, 4)]
    first, second, other = map(one_shot_png, shown)
    assert first == second != other


def test_drawings_of_a_row_are_different_images_of_one_class() -> None:
    data = dataset()
    rows = choose_drawings(data, 8, 4, seed=0)
    assert data.labels is not None
    assert (data.labels[rows] == data.labels[rows[:, :1]]).all()
    assert len(np.unique(rows)) == rows.size
    assert len(np.unique(data.labels[rows[:, 0]])) == 8


def test_targets_to_look_up_are_chosen_by_entropy_and_the_last_misses_its_class() -> None:
    model, episode = vma.build_vma(CONFIG), EpisodeSampler(dataset()).episode(0).tensors()
    first, median, last, without = lookups(model, episode, samples=3, seed=0)
    entropies = [float(-(each.q * np.log(each.q)).sum()) for each in (first, median, last)]
    everything = model.posterior(episode.targets, Memory.of(episode.memory)).entropy().detach()
    assert entropies == pytest.approx(
        [float(everything.min()), float(everything.sort().values[16]), float(everything.max())]
    )
    assert np.array_equal(without.target, first.target)
    assert not without.kept[episode.memory_labels.numpy() == without.label].any()
    assert without.q.sum() == pytest.approx(1)
    assert without.q[~without.kept].sum() == 0
