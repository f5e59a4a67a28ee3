"""Work done once gives what the straightforward per-pair computation gives: same terms, same gradients."""

from dataclasses import fields

import pytest
import torch

from tests.helpers.oracles import (
    distributions,
    episode,
    flat_gradient,
    reference_terms,
    small_convolutional,
    small_mlp,
)
from vma import ModelConfig, estimate
from vma.build import build_vma
from vma.networks.convolutional import Pyramid, scales
from vma.networks.features import add_half
from vma.networks.layers import Norm, convolution, transposed
from vma.reads import Reads, gather, independent, straight_through

IN_ORDER = {"likelihood": "reading-order", "context_maps": 3, "neighbourhood": (5, 3)}
CONFIGS = {
    "mlp": small_mlp(),
    "mlp, m in the first layer": small_mlp(item_layers="first"),
    "mlp learned": small_mlp(learned_items=4),
    "convolutional": small_convolutional(),
    "convolutional modern": small_convolutional(style="modern"),
    "convolutional learned": small_convolutional(learned_items=4),
    "paper size": ModelConfig(maps=6),
    "square 28": ModelConfig(height=28, width=28, maps=4),
    "smallest": ModelConfig(height=16, width=19, maps=4),
    "mlp in order": small_mlp(**IN_ORDER),
    "mlp learned in order": small_mlp(learned_items=4, **IN_ORDER),
    "convolutional in order": ModelConfig(height=16, width=19, maps=8, style="modern", latent=3, **IN_ORDER),
    "mlp grey": small_mlp(likelihood="categorical", levels=4),
    "mlp colour": small_mlp(likelihood="categorical", levels=4, channels=3),
    "convolutional colour": small_convolutional(likelihood="categorical", levels=5, channels=3),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_fast_path_equals_the_reference(config: ModelConfig) -> None:
    model = build_vma(config)
    x, memory = episode(config, 3, 4)
    chosen, p_a, q_a = distributions(model, x, memory)
    reads = independent(q_a, 4, chosen)
    noise = torch.randn(3, 4, config.latent)
    fast = model.terms_at(x, chosen, p_a, q_a, reads, noise)
    slow = reference_terms(model, x, chosen, p_a, q_a, reads.addresses, noise)
    for name in ("log_p_a", "log_q_a", "log_p_z", "log_q_z", "log_p_x", "log_mass", "kl_z"):
        torch.testing.assert_close(getattr(fast, name), getattr(slow, name), rtol=1e-11, atol=1e-11)
    parameters = list(model.parameters())
    gradients = [flat_gradient(estimate(terms).surrogate, parameters) for terms in (fast, slow)]
    torch.testing.assert_close(*gradients, rtol=1e-9, atol=1e-10)
    assert gradients[0].abs().max() > 1e-3


@pytest.mark.parametrize("config", [small_mlp(), small_convolutional()], ids=["mlp", "convolutional"])
def test_straight_through_reads_have_the_values_of_hard_reads(config: ModelConfig) -> None:
    model = build_vma(config)
    x, memory = episode(config, 3, 4)
    chosen, p_a, q_a = distributions(model, x, memory)
    reads = straight_through(q_a, 4, chosen)
    noise = torch.randn(3, 4, config.latent)
    soft = model.terms_at(x, chosen, p_a, q_a, reads, noise)
    hard = reference_terms(model, x, chosen, p_a, q_a, reads.addresses, noise)
    for field in fields(hard)[:5]:
        torch.testing.assert_close(
            getattr(soft, field.name), getattr(hard, field.name), rtol=1e-11, atol=1e-11
        )


class Counting(torch.nn.Module):
    """Counts the rows that a network is given."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner, self.rows = inner, 0

    def forward(self, h: torch.Tensor) -> object:
        self.rows += len(h)
        return self.inner(h)


def test_each_piece_runs_once_per_thing_it_depends_on() -> None:
    config = small_convolutional()
    model = build_vma(config)
    x, memory = episode(config, 3, 6)
    chosen, p_a, q_a = distributions(model, x, memory)
    reads = Reads(torch.tensor([[1, 1, 1, 4], [4, 4, 4, 4], [1, 1, 1, 1]]), torch.zeros(3, 4))
    networks = model.networks
    networks.item_pyramid = items = Counting(networks.item_pyramid)
    networks.encoder_x = targets = Counting(networks.encoder_x)
    networks.encoder_pyramid = pairs = Counting(networks.encoder_pyramid)
    networks.decoder.expand = decoded = Counting(networks.decoder.expand)
    model.terms_at(x, chosen, p_a, q_a, reads, torch.randn(3, 4, config.latent))
    assert (items.rows, targets.rows, pairs.rows, decoded.rows) == (2, 3, 4, 12)


def test_gather_brings_each_row_home() -> None:
    addresses = torch.tensor([[7, 2, 7], [2, 2, 9]])
    rows = gather(Reads(addresses, torch.zeros(2, 3)))
    assert rows.items.tolist() == [2, 7, 9]
    assert rows.reads.tolist() == [1, 3, 4, 0, 2, 5]
    assert rows.read_target.tolist() == [0, 1, 1, 0, 0, 1]
    assert rows.to_reads(rows.items).tolist() == [2, 2, 2, 7, 7, 9]
    pairs = torch.stack((rows.pair_target, rows.items_of_pairs(rows.items)), 1)
    assert pairs.tolist() == [[0, 2], [1, 2], [0, 7], [1, 9]]
    assert rows.pairs_to_reads(pairs).tolist() == [[0, 2], [1, 2], [1, 2], [0, 7], [0, 7], [1, 9]]


@pytest.mark.parametrize("part", [slice(0, 6), slice(1, 4), slice(3, 5), slice(5, 6)])
def test_halves_are_rows_of_reads_with_a_gradient_and_of_items_without(part: slice) -> None:
    rows = gather(Reads(torch.tensor([[7, 2, 7], [2, 2, 9]]), torch.zeros(2, 3)))
    (each,), nothing = rows.halves((rows.items,), part)
    assert nothing is None
    assert each.tolist() == [2, 2, 2, 7, 7, 9][part]
    with torch.no_grad():
        (items,), repeats = rows.halves((rows.items,), part)
    assert repeats is not None
    assert all(repeats)
    assert items.unique().tolist() == items.tolist()
    assert items.repeat_interleave(torch.tensor(repeats)).tolist() == each.tolist()


def test_a_half_is_added_to_each_of_its_reads() -> None:
    y, half = torch.randn(6, 3, 2, 2), torch.randn(3, 3, 2, 2)
    wanted = y + half[[0, 0, 0, 1, 2, 2]]
    assert torch.equal(add_half(y.clone(), half, [3, 1, 2]), wanted)
    assert torch.equal(add_half(y.clone(), half[[0, 0, 0, 1, 2, 2]], None), wanted)


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_blocks_of_a_gather_hold_every_read_once(size: int) -> None:
    addresses = torch.randint(0, 12, (6, 9))
    found = torch.full((54,), -1)
    for block in gather(Reads(addresses, torch.zeros(6, 9))).blocks(size):
        assert 0 < len(block.items) <= (size or 12)
        items = block.items[block.read_item]
        assert torch.equal(block.items_of_pairs(block.items)[block.read_pair], items)
        assert torch.equal(block.pair_target[block.read_pair], block.read_target)
        assert torch.equal(block.read_target, block.reads // 9)
        found[block.reads] = items
    assert torch.equal(found.view(6, 9), addresses)


@pytest.mark.parametrize("gradient", [True, False])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_chunks_give_the_same_terms(config: ModelConfig, gradient: bool) -> None:
    """Also without a gradient, where an item's rows are not repeated for its reads."""
    model = build_vma(config)
    x, memory = episode(config, 3, 4)
    chosen, p_a, q_a = distributions(model, x, memory)
    reads, noise = independent(q_a, 9, chosen), torch.randn(3, 9, config.latent)
    whole = model.terms_at(x, chosen, p_a, q_a, reads, noise)
    for chunk in (0, 1, 2, 5):
        with torch.set_grad_enabled(gradient):
            parts = model.terms_at(x, chosen, p_a, q_a, reads, noise, chunk=chunk)
        for name in ("log_p_z", "log_q_z", "log_p_x", "kl_z", "z"):
            torch.testing.assert_close(getattr(parts, name), getattr(whole, name), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("size", [16, 17, 26, 28, 31, 64, 105])
def test_the_decoder_comes_back_to_the_image_size(size: int) -> None:
    config = ModelConfig(height=size, width=size + 3, maps=2, hidden=(4,), latent=2, matching=3)
    x, memory = episode(config, 2, 2)
    terms = build_vma(config).terms(x, memory, 2)
    assert terms.log_p_x.shape == (2, 2)
    assert scales(26) == [26, 13, 7, 4]


def test_the_paper_sizes() -> None:
    model = build_vma(ModelConfig())
    networks = model.networks
    convolutions = [networks.encoder_x, *networks.encoder_pyramid.layers]
    assert [c.stride[0] for c in convolutions] == [1, 2, 1, 2, 1, 2]
    assert [c.kernel_size for c in convolutions] == [(3, 3)] * 6
    assert {c.out_channels for c in convolutions} == {64}
    assert networks.encoder_head[-1].out_features == 2 * 64
    assert model.keyed(episode(model.config, 1, 3)[1]).keys.shape == (3, 128)


def test_initialisation_keeps_the_signal() -> None:
    """The variance of each layer's output stays within a factor of the input's, for all six layers."""
    first, pyramid = convolution(1, 64), Pyramid(64, "paper")
    levels = pyramid(first(torch.randn(16, 1, 26, 26)))
    power = [float(level.detach().square().mean()) for level in levels]
    assert all(0.3 < p < 3 for p in power), power


@pytest.mark.parametrize(("maps", "groups"), [(16, 8), (12, 3), (8, 8), (6, 1)])
def test_norm_is_group_norm(maps: int, groups: int) -> None:
    """Values and all gradients are those of torch's own, in both layouts of memory."""
    ours, theirs = Norm(groups, maps), torch.nn.GroupNorm(groups, maps)
    with torch.no_grad():
        for parameter, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            other.copy_(parameter.normal_())
    for layout in (torch.channels_last, torch.contiguous_format):
        y = torch.randn(3, maps, 5, 7).mul(2).add(0.7).contiguous(memory_format=layout).requires_grad_()
        weights = torch.randn(3, maps, 5, 7)
        results = [norm(y) for norm in (ours, theirs)]
        torch.testing.assert_close(*results, rtol=1e-11, atol=1e-11)
        gradients = [
            torch.autograd.grad((result * weights).sum(), (y, norm.weight, norm.bias))
            for result, norm in zip(results, (ours, theirs), strict=True)
        ]
        for found, expected in zip(*gradients, strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_norm_of_a_constant_is_finite() -> None:
    y = torch.full((2, 8, 3, 3), 1e4, dtype=torch.float32, requires_grad=True)
    found = Norm(8, 8).float()(y)
    (gradient,) = torch.autograd.grad(found.sum(), y)
    assert bool(found.isfinite().all())
    assert bool(gradient.isfinite().all())


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 5), (5, 1), (4, 6)])
def test_convolutions_are_convolutions(inputs: int, outputs: int, bias: bool) -> None:
    """Those from and to one map are products of matrices, another one without a gradient: all is as torch's."""
    layer = convolution(inputs, outputs, bias=bias)
    h = torch.randn(3, inputs, 5, 7).contiguous(memory_format=torch.channels_last).requires_grad_()
    if bias:
        torch.nn.init.normal_(layer.bias)
    results = layer(h), torch.nn.functional.conv2d(h, layer.weight, layer.bias, padding=1)
    torch.testing.assert_close(*results, rtol=1e-11, atol=1e-11)
    with torch.no_grad():
        torch.testing.assert_close(layer(h), results[1], rtol=1e-11, atol=1e-11)
    weights, wanted = torch.randn_like(results[0]), (h, *layer.parameters())
    gradients = [torch.autograd.grad((result * weights).sum(), wanted) for result in results]
    for found, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("extra", [(0, 0), (1, 0), (1, 1)])
def test_transposed_convolutions_are_torchs(extra: tuple[int, int]) -> None:
    layer = transposed(4, extra)
    torch.nn.init.normal_(layer.bias)
    h = torch.randn(2, 4, 3, 5).contiguous(memory_format=torch.channels_last)
    expected = torch.nn.functional.conv_transpose2d(h, layer.weight, layer.bias, 2, 1, extra)
    torch.testing.assert_close(layer(h), expected, rtol=1e-11, atol=1e-11)
