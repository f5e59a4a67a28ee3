"""Warped inputs: what they do to an image, and that only q(a|x) in training ever sees one."""

import math

import pytest
import torch

from tests.helpers.oracles import SIGMAS, bits, episode, small_convolutional, small_mlp
from vma import InputError, Memory
from vma.build import build_vma
from vma.warps import WarpSettings, look, maps, strength, turned, warped

ONE = torch.zeros(1, dtype=torch.float64)


def test_no_warp_changes_nothing() -> None:
    images = bits(3, 9, 7)
    assert look(WarpSettings()) is None
    assert warped(images, WarpSettings()) is images
    moved = warped(images, WarpSettings(shift=1e-12), torch.Generator().manual_seed(0))
    torch.testing.assert_close(moved, images, rtol=0, atol=1e-9)


def test_a_map_is_what_its_numbers_say() -> None:
    """Each number alone gives the textbook's matrix, for the value that was drawn."""
    source = torch.Generator().manual_seed(5)
    for name, matrix in {
        "rotation": lambda t: [[math.cos(t), -math.sin(t), 0.0], [math.sin(t), math.cos(t), 0.0]],
        "shear": lambda t: [[1.0, t, 0.0], [0.0, 1.0, 0.0]],
        "scale": lambda t: [[1 + t, 0.0, 0.0], [0.0, 1 + t, 0.0]],
        "aspect": lambda t: [[1 + t, 0.0, 0.0], [0.0, 1 / (1 + t), 0.0]],
    }.items():
        state = source.get_state()
        found = maps(WarpSettings(**{name: 0.3}), 4, ONE, source)
        row = ("rotation", "shear", "scale", "aspect").index(name)
        source.set_state(state)
        drawn = 0.3 * (torch.rand((6, 4), generator=source) * 2 - 1)[row]
        expected = torch.tensor([matrix(float(t)) for t in drawn])
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_numbers_are_uniform_between_plus_and_minus_the_setting() -> None:
    count = 20_000
    shift = maps(WarpSettings(shift=0.4), count, ONE, torch.Generator().manual_seed(1))[:, :, 2]
    assert float(shift.abs().max()) <= 0.4
    deviation = 0.4 / math.sqrt(3)
    assert float(shift.mean().abs()) < SIGMAS * deviation / math.sqrt(2 * count)
    assert float(shift.std()) == pytest.approx(deviation, rel=SIGMAS / math.sqrt(2 * count))


def test_every_image_has_a_map_of_its_own_and_ink_leaves_over_the_edge() -> None:
    images = torch.zeros(50, 9, 9)
    images[:, 4, 4] = 1.0
    seen = warped(images, WarpSettings(shift=0.5), torch.Generator().manual_seed(2))
    assert len({tuple(image.flatten().tolist()) for image in seen}) == 50
    torch.testing.assert_close(
        seen.sum((1, 2)), torch.ones(50)
    )  # bilinear: a point's ink is shared out, not lost
    gone = warped(torch.ones(20, 9, 9), WarpSettings(shift=0.9), torch.Generator().manual_seed(4))
    assert float(gone.sum((1, 2)).max()) < 81.0


@pytest.mark.parametrize("turn", range(8))
def test_a_turn_is_one_of_eight_and_can_be_undone(turn: int) -> None:
    image = torch.arange(16.0).view(1, 4, 4)
    seen = turned(image, turn)
    back = seen.rot90(-(turn % 4), (-2, -1))
    assert (back.flip(-1) if turn >= 4 else back).equal(image)
    assert len({tuple(turned(image, each).flatten().tolist()) for each in range(8)}) == 8
    assert turned(torch.rand(2, 3, 5), turn).shape == (2, 3, 5)


def test_memory_and_targets_are_turned_alike_in_one_update_and_otherwise_in_another() -> None:
    image = torch.arange(16.0).view(1, 4, 4)
    found = []
    for seed in range(40):
        seen = look(WarpSettings(turns=True), torch.Generator().manual_seed(seed))
        assert seen is not None
        assert seen(image).equal(seen(image))
        found.append(tuple(seen(image).flatten().tolist()))
    assert len(set(found)) == 8


@pytest.mark.parametrize("values", [{"rotation": -0.1}, {"scale": 1.0}, {"aspect": 1.5}])
def test_impossible_warps_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(InputError, match="warp"):
        WarpSettings(**values)


@pytest.mark.parametrize("config", [small_mlp(), small_convolutional(style="modern")])
def test_only_q_of_a_sees_a_warped_image(config) -> None:
    """With the same reads and noise every term but log q(a|x) is the same number, bit for bit."""
    model = build_vma(config)
    x, memory = episode(config, 5, 6)
    assert memory is not None
    seen = look(strength(2.0), torch.Generator().manual_seed(1))
    plain = model.terms(x, memory, 1, sampling="all", generator=torch.Generator().manual_seed(2))
    warped_terms = model.terms(
        x, memory, 1, sampling="all", seen=seen, generator=torch.Generator().manual_seed(2)
    )
    for name in ("log_p_a", "log_p_z", "log_q_z", "log_p_x"):
        assert getattr(plain, name).equal(getattr(warped_terms, name))
    assert not plain.log_q_a.allclose(warped_terms.log_q_a)


def test_in_evaluation_nothing_is_warped_and_nothing_is_random() -> None:
    """Bounds have no way to be given a warp: the same numbers before and after one was used in training."""
    model, config = build_vma(small_mlp()), small_mlp()
    x, memory = episode(config, 5, 6)
    assert memory is not None

    def numbers() -> list[torch.Tensor]:
        source = torch.Generator().manual_seed(3)
        return [model.bound(x, memory, 8, generator=source), model.posterior(x, memory).log_probs.detach()]

    before = numbers()
    model(x, memory, 4, seen=look(strength(1.0, turns=True), torch.Generator().manual_seed(1)))
    assert all(one.equal(two) for one, two in zip(before, numbers(), strict=True))
    assert isinstance(memory, Memory)
