"""Muon, rates and averages against their formulas."""

import math
from dataclasses import replace

import pytest
import torch

from tests.helpers.oracles import small_convolutional, small_mlp
from vma.build import build_vma
from vma.runs.settings import OptimiserSettings
from vma.training.muon import Muon, orthogonalise
from vma.training.optimiser import (
    CONVOLUTIONS,
    Average,
    build_optimisers,
    muon_parameters,
    rate_factor,
    set_rates,
    transposed_kernels,
)


@pytest.mark.parametrize("shape", [(3, 8, 20), (2, 20, 8), (1, 6, 6)])
def test_orthogonalised_matrices_keep_their_singular_vectors(shape: tuple[int, ...]) -> None:
    u, s, vh = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    found = orthogonalise(u @ torch.diag_embed(s) @ vh)
    values = u.mT @ found @ vh.mT
    diagonal = values.diagonal(dim1=1, dim2=2)
    torch.testing.assert_close(values, torch.diag_embed(diagonal), rtol=0, atol=1e-9)
    large = diagonal[s > 0.05 * s.amax(1, keepdim=True)]
    assert bool(((large > 0.6) & (large < 1.3)).all())


def test_one_step_of_muon() -> None:
    weight = torch.nn.Parameter(torch.randn(8, 3, 3, 3))
    before, gradient = weight.detach().clone(), torch.randn(8, 3, 3, 3)
    weight.grad = gradient.clone()
    Muon([{"params": [weight], "transposed": False}], rate=0.1).step()
    move = orthogonalise((1.95 * gradient).flatten(1)[None])[0].view_as(weight)
    torch.testing.assert_close(weight.detach(), before - 0.1 * move)


def shaken(decay: float, gradients: list[torch.Tensor]) -> tuple[list[torch.Tensor], Muon]:
    """A matrix, at first all ones, after each update."""
    weight = torch.nn.Parameter(torch.ones(4, 6))
    muon = Muon([{"params": [weight], "transposed": False}], rate=0.1, weight_decay=decay)
    seen = [weight.detach().clone()]
    for gradient in gradients:
        weight.grad = gradient.clone()
        muon.step()
        seen.append(weight.detach().clone())
    return seen, muon


@pytest.mark.parametrize("transposed", [False, True])
def test_without_a_gradient_decay_alone_shrinks_the_weights(transposed: bool) -> None:
    weight = torch.nn.Parameter(torch.randn(8, 3, 3, 3))
    before = weight.detach().clone()
    muon = Muon([{"params": [weight], "transposed": transposed}], rate=0.1, weight_decay=0.3)
    for _ in range(5):
        weight.grad = torch.zeros_like(weight)
        muon.step()
    torch.testing.assert_close(weight.detach(), (1 - 0.1 * 0.3) ** 5 * before, rtol=1e-14, atol=0)


def test_decay_does_not_turn_the_direction_that_muon_moves_in() -> None:
    gradients = [1e-3 * torch.randn(4, 6) for _ in range(4)]
    (decayed, muon), (plain, other) = shaken(0.3, gradients), shaken(0.0, gradients)
    for i in range(4):
        move = decayed[i + 1] - (1 - 0.1 * 0.3) * decayed[i]
        torch.testing.assert_close(move, plain[i + 1] - plain[i], rtol=0, atol=1e-14)
    momenta = [next(iter(each.state.values()))["momentum"] for each in (muon, other)]
    assert torch.equal(*momenta)


def test_a_transposed_kernel_moves_as_the_plain_one_with_its_axes_swapped() -> None:
    plain, swapped = (torch.nn.Parameter(torch.zeros(s)) for s in ((8, 3, 3, 3), (3, 8, 3, 3)))
    plain.grad = torch.randn(8, 3, 3, 3)
    swapped.grad = plain.grad.transpose(0, 1).clone()
    Muon([{"params": [plain], "transposed": False}], rate=0.1).step()
    Muon([{"params": [swapped], "transposed": True}], rate=0.1).step()
    torch.testing.assert_close(swapped.detach().transpose(0, 1), plain.detach())


def test_what_muon_moves() -> None:
    model = build_vma(small_convolutional(learned_items=3))
    names = dict(muon_parameters(model, (*CONVOLUTIONS, torch.nn.Linear)))
    assert "networks.encoder_pyramid.layers.0.weight" in names
    assert "networks.encoder_x.weight" not in names  # one map in
    assert "networks.decoder.layers_h.5.weight" not in names  # one map out
    assert "networks.prior.3.weight" not in names  # a Gaussian's head
    assert "addressing.prior_query" not in names
    assert "learned_memory.items" not in names
    assert transposed_kernels(model) <= {n for n, _ in model.named_parameters()}
    assert "networks.decoder.layers_m.0.weight" in transposed_kernels(model)
    kernels = dict(muon_parameters(model, CONVOLUTIONS))
    assert set(kernels) == {name for name, weight in names.items() if weight.ndim == 4}


@pytest.mark.parametrize("name", ["adam", "muon", "muon-kernels"])
def test_every_parameter_is_optimised_once_and_a_learned_memory_is_not_decayed(name: str) -> None:
    model = build_vma(small_mlp(learned_items=3))
    optimisers = build_optimisers(model, OptimiserSettings(name=name, weight_decay=0.1))
    groups = [group for optimiser in optimisers for group in optimiser.param_groups]
    seen = [id(p) for group in groups for p in group["params"]]
    assert sorted(seen) == sorted(id(p) for p in model.parameters())
    free = [group for group in groups if group["weight_decay"] == 0.0]
    assert [p.shape for group in free for p in group["params"]] == [model.learned_memory.items.shape]


def test_rates_rise_and_fall() -> None:
    settings = OptimiserSettings(warmup=10, schedule="cosine", floor=0.1)
    assert rate_factor(settings, 0, 0.0) == pytest.approx(0.1)
    assert rate_factor(settings, 9, 0.0) == pytest.approx(1.0)
    assert rate_factor(settings, 50, 0.5) == pytest.approx(0.1 + 0.9 * 0.5)
    assert rate_factor(settings, 99, 1.0) == pytest.approx(0.1)
    assert rate_factor(settings, 99, 2.0) == pytest.approx(0.1)
    assert rate_factor(replace(settings, schedule="constant"), 50, 0.9) == 1.0
    optimiser = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=0.3)
    for factor in (0.5, 0.25):
        set_rates([optimiser], factor)
        assert optimiser.param_groups[0]["lr"] == pytest.approx(0.3 * factor)


def test_rates_fall_in_steps() -> None:
    settings = OptimiserSettings(schedule="steps")
    factors = [rate_factor(settings, update, update / 90) for update in range(90)]
    assert factors == [1.0] * 30 + [0.3] * 30 + [0.1] * 30
    assert rate_factor(settings, 90, 1.0) == rate_factor(settings, 99, 1.1) == 0.1
    assert rate_factor(replace(settings, warmup=10), 4, 0.05) == 0.5


def test_the_average_is_a_moving_one() -> None:
    model = build_vma(small_mlp())
    average = Average(model, 0.9)
    first = next(average.model.parameters()).clone()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    average.update(model, 1)
    decay = 2 / 11
    torch.testing.assert_close(next(average.model.parameters()), first + (1 - decay))
    average.update(model, 10**6)
    torch.testing.assert_close(next(average.model.parameters()), first + 1 - decay * 0.9)
    assert Average(model, 0.0).model is model
    assert math.isclose(decay, (1 + 1) / (10 + 1))
