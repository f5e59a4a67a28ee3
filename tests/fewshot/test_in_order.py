"""A model with ink in reading order, used as any other: crisp drawings, still where they should be, and checked."""

from pathlib import Path

import pytest
import torch

from tests.helpers.oracles import small_convolutional
from tests.helpers.trained_models import drawings, trained
from vma import InputError
from vma.data.picture import FolderOptions
from vma.fewshot import ImageMemory, TrainedModel
from vma.fewshot.figures import imagined_png

CONFIG = small_convolutional(likelihood="reading-order", context_maps=4, neighbourhood=(5, 3))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TrainedModel:
    return trained(tmp_path_factory.mktemp("model"), CONFIG)


@pytest.fixture
def memory(model: TrainedModel) -> ImageMemory:
    return model.remember(drawings(4), ["a", "b", "a", None])


def test_imagined_images_are_black_and_white_and_shown_as_drawn(memory: ImageMemory) -> None:
    found = memory.imagine(20, seed=3)
    assert set(found.images.unique().tolist()) <= {0.0, 1.0}
    assert torch.equal(found.shown, found.images)
    assert bool(((found.probabilities > 0) & (found.probabilities < 1)).all())
    again = memory.imagine(20, seed=3)
    assert torch.equal(found.images, again.images)
    assert imagined_png(memory, found).startswith(b"\x89PNG")


def test_more_images_than_are_drawn_at_once_are_the_same_ones(memory: ImageMemory) -> None:
    found = memory.imagine(70, seed=3)
    model, items = memory.model, memory.keyed
    assert len(found.images) == 70
    source = torch.Generator().manual_seed(3)
    a = model.prior(items).sample(70, source)
    noise = torch.randn(70, CONFIG.latent, dtype=memory.items.dtype, generator=source)
    uniforms = torch.rand(70, *memory.size, dtype=memory.items.dtype, generator=source)
    drawn = model.draw(items.memory, a[64:], noise[64:], uniforms[64:])
    assert torch.equal(found.images[64:], drawn.images)


def test_cold_and_varied_drawings_do_not_flicker(memory: ImageMemory) -> None:
    cold = memory.imagine(6, item=1, temperature=0.0).images
    assert torch.equal(cold, cold[:1].expand_as(cold))
    points = [(0.0, 0.0), (1.0, 0.5)]
    first, second = memory.vary(1, points), memory.vary(1, points)
    assert torch.equal(first, second)
    assert torch.equal(first[0], cold[0])
    assert set(first.unique().tolist()) <= {0.0, 1.0}


def test_all_questions_have_answers(memory: ImageMemory) -> None:
    x = drawings(2, seed=5)
    assert len(memory.recognise(x)) == 2
    assert all(score.log_p < 0 for score in memory.score(x))
    found = memory.explain(x[0])
    assert set(found.reconstruction.unique().tolist()) <= {0.0, 1.0}


def test_grey_images_are_refused_in_a_sentence(memory: ImageMemory, model: TrainedModel) -> None:
    grey, options = drawings(2) * 0.5, FolderOptions(level=False, binarize=None, invert="no")
    for ask in (memory.recognise, memory.score, memory.add, model.remember):
        with pytest.raises(InputError, match="images must be black and white"):
            ask(grey, options=options)


def test_a_memory_comes_back_from_its_file(memory: ImageMemory, model: TrainedModel, tmp_path: Path) -> None:
    memory.save(tmp_path / "memory.safetensors")
    again = model.open_memory(tmp_path / "memory.safetensors")
    assert torch.equal(again.imagine(5, seed=1).images, memory.imagine(5, seed=1).images)
