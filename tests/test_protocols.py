"""What `with-replacement` gives away: a model that copies from memory gains there, and never if `disjoint`."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers.oracles import SIGMAS
from vma import Memory
from vma.data.dataset import Dataset
from vma.data.samplers import EpisodeSampler

SIDE, DRAWERS, STEPS = 8, 20, 600


def distinct_images(classes: int) -> Dataset:
    """Random binary images, no two alike, so that being in memory is all there is to be known."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 2, (classes * DRAWERS, SIDE, SIDE), dtype=np.uint8) * np.uint8(255)
    assert len(np.unique(images, axis=0)) == len(images)
    labels = np.repeat(np.arange(classes), DRAWERS)
    return Dataset("made", "test", images, labels, tuple(map(str, range(classes))), "made for a test")


class Copier:
    """p(x|M) = ½ 2^−n + ½ 1/|M| Σ_a [x = m_a]: uniform over images, or a copy of an item."""

    def log_p_x(self, x: Tensor, memory: Memory) -> Tensor:
        same = (x[:, None] == memory.items[None]).all(-1).all(-1).double()
        return (0.5 * 2.0 ** -(SIDE**2) + 0.5 * same.mean(1)).log()


def gains(protocol: str, classes: int) -> Tensor:
    """log p(x|M) of the copier above the uniform distribution's, one target per episode of 19 items."""
    sampler = EpisodeSampler(
        distinct_images(8), classes=classes, targets=1, shots=19, counts="total", protocol=protocol
    )  # type: ignore[arg-type]
    values = []
    for step in range(STEPS):
        given = sampler.episode(step).tensors()
        values.append(Copier().log_p_x(given.targets, Memory.of(given.memory)))
    return torch.cat(values) + SIDE**2 * math.log(2)


@pytest.mark.parametrize(("classes", "share"), [(1, 0.62), (2, 0.38), (4, 0.21)])
def test_with_replacement_a_copying_model_gains(classes: int, share: float) -> None:
    """The target is in memory as often as independent draws of 20 images of C classes make it."""
    expected = 1 - (1 - 1 / (DRAWERS * classes)) ** 19
    assert round(expected, 2) == share
    gain = gains("with-replacement", classes)
    copied = (gain > 0).double()
    assert abs(float(copied.mean()) - expected) < SIGMAS * math.sqrt(expected * (1 - expected) / STEPS)
    assert float(gain.mean()) > 5  # nats, for having seen the answer


def test_disjoint_it_cannot() -> None:
    """Not once is the target in memory: the copier pays log 2 for every image and gains nothing."""
    torch.testing.assert_close(gains("disjoint", 1), torch.full((STEPS,), -math.log(2)))
