"""Convolutions by tiles give what torch's give, where they save time."""

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.helpers.many_reads import rows_of_calls, terms_of_many_reads
from tests.helpers.oracles import episode, small_convolutional
from vma import VMA, Memory, ModelConfig
from vma.build import build_vma
from vma.evaluation.likelihood import bounds
from vma.kernels import compiled, winograd
from vma.networks.layers import convolution

pytestmark = pytest.mark.usefixtures("one_thread")
MANY = compiled.MANY


@pytest.fixture
def uses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of images in each call, with any number of maps."""
    monkeypatch.setattr(winograd, "FEWEST_MAPS", 1)
    return rows_of_calls(monkeypatch, winograd, "by_tiles", 0)


def maps_of(reads: int, maps: int, height: int, width: int) -> Tensor:
    """Random maps, as the networks lay them."""
    return torch.randn(reads, maps, height, width).contiguous(memory_format=torch.channels_last)


# All remainders of the tiles' size, and sizes with no whole tile, with one and with several.
@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 6, 7, 13, 14])
@pytest.mark.parametrize("width", [1, 2, 4, 5, 8, 9, 11])
def test_tiles_give_the_convolution(height: int, width: int) -> None:
    h, weight = maps_of(3, 5, height, width), torch.randn(4, 5, 3, 3)
    expected = functional.conv2d(h, weight, padding=1)
    torch.testing.assert_close(winograd.by_tiles(h, weight), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("reads", [0, 1, 28, 29])
def test_reads_are_taken_some_at_a_time(reads: int) -> None:
    h, weight = maps_of(reads, 5, 13, 13), torch.randn(5, 5, 3, 3)
    assert winograd.TILES_AT_ONCE // 9 == 28
    expected = functional.conv2d(h, weight, padding=1)
    torch.testing.assert_close(winograd.by_tiles(h, weight), expected, rtol=1e-11, atol=1e-11)


def test_another_layout_gives_the_same() -> None:
    h, weight = torch.randn(2, 5, 13, 7), torch.randn(5, 5, 3, 3)
    expected = functional.conv2d(h, weight, padding=1)
    torch.testing.assert_close(winograd.by_tiles(h, weight), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("size", [4, 7, 13])
def test_rounding_in_single_precision_is_small(size: int) -> None:
    """Three to seven times that of torch's convolution, by the docstring; here no more than ten times."""
    h, weight = maps_of(64, 64, size, size), torch.randn(64, 64, 3, 3) / 24
    exact = functional.conv2d(h, weight, padding=1)
    single = h.float(), weight.float()
    errors = [
        float((found.double() - exact).square().mean().sqrt())
        for found in (winograd.by_tiles(*single), functional.conv2d(*single, padding=1))
    ]
    assert 0.5 < float(exact.std()) < 2
    assert errors[0] < min(10 * errors[1], 1e-5)


@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_gives_the_same_either_way(bias: bool, uses: list[int]) -> None:
    layer, h = convolution(6, 6, bias=bias).double(), maps_of(4, 6, 13, 7)
    if bias:
        torch.nn.init.normal_(layer.bias)
    with torch.no_grad():
        by_layers = layer(h)
        assert not uses
        with compiled.for_reads(MANY):
            tiles = layer(h)
    assert uses == [4]
    torch.testing.assert_close(tiles, by_layers, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("style", ["paper", "modern"])
def test_a_bound_of_many_reads_has_the_terms_of_the_reference(
    style: str, monkeypatch: pytest.MonkeyPatch, uses: list[int]
) -> None:
    fast, slow = terms_of_many_reads(small_convolutional(style=style), monkeypatch)
    assert len(uses) >= 2 * (3 + 1 + 1)  # two scales: the decoder in three chunks, the encoder and the items
    for term in ("log_p_x", "log_q_z", "log_p_z"):
        torch.testing.assert_close(getattr(fast, term), getattr(slow, term), rtol=1e-10, atol=1e-10)


def test_bounds_in_single_precision_are_the_same(monkeypatch: pytest.MonkeyPatch, uses: list[int]) -> None:
    monkeypatch.setattr(compiled, "MANY", 3 * 50)
    config = ModelConfig(maps=48)
    model = build_vma(config).float()
    x, memory = episode(config, 3, 4)
    tiles, layers = (sampled_bounds(model, x, memory, by_layers) for by_layers in (False, True))
    assert uses
    torch.testing.assert_close(tiles, layers, rtol=1e-6, atol=0)


@pytest.mark.parametrize("style", ["paper", "modern"])
def test_mixed_precision_is_left_to_torch(
    style: str, monkeypatch: pytest.MonkeyPatch, uses: list[int]
) -> None:
    monkeypatch.setattr(compiled, "MANY", 3 * 50)
    config = ModelConfig(maps=8, style=style)
    model = build_vma(config).float()
    x, memory = episode(config, 3, 4)
    with torch.autocast("cpu", torch.bfloat16):
        assert sampled_bounds(model, x, memory).isfinite().all()
    assert not uses


def sampled_bounds(model: VMA, x: Tensor, memory: Memory | None, by_layers: bool = False) -> Tensor:
    """Bounds of 50 reads, always the same ones."""
    with compiled.by_layers() if by_layers else nullcontext():
        return bounds(model, x, memory, 50, generator=torch.Generator().manual_seed(0))


def test_tiles_are_left_where_they_gain_nothing(uses: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    layer, h = convolution(6, 6).double(), maps_of(4, 6, 13, 7)
    with compiled.for_reads(MANY):
        layer(h)  # a gradient is wanted
        with torch.no_grad():
            convolution(6, 6, stride=2).double()(h)
            with compiled.by_layers():
                layer(h)
            monkeypatch.setattr(winograd, "FEWEST_MAPS", 7)
            layer(h)
            assert not uses
            monkeypatch.setattr(winograd, "FEWEST_MAPS", 6)
            layer(h)
    assert uses == [4]


def test_what_is_not_a_number_stays_with_its_read() -> None:
    h, weight = maps_of(3, 5, 13, 13), torch.randn(5, 5, 3, 3)
    h[1, 2, 6, 6] = torch.nan
    y = winograd.by_tiles(h, weight)
    assert y[1, :, 5:8, 5:8].isnan().all()
    assert y[[0, 2]].isfinite().all()
