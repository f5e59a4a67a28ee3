"""The sleep phase, proven: dreams are draws of p(a,x), and the gradient is that of E_p(x)[KL(p(a|x) ‖ q(a|x))]."""

import itertools

import pytest
import torch
from torch import Tensor

from tests.helpers.oracles import LEVEL, bits, chi_square_p_value, flat_gradient, quadrature, small_mlp

from tests.helpers.oracles import reference_decoder, reference_log_prob, reference_prior  # isort: skip
from vma import VMA, Memory
from vma.build import build_vma
from vma.dreams import Dreams, dream, recognise_dreams
from vma.latents import DiagonalGaussian
from vma.warps import look, strength

CONFIG = small_mlp(height=2, width=2)
ALL_IMAGES = torch.tensor(list(itertools.product((0.0, 1.0), repeat=4)), dtype=torch.float64).view(-1, 2, 2)


def spread_(model: VMA) -> VMA:
    """Weights large enough that p(a), q(a|x) and p(x|m,z) are far from flat."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.4 * torch.randn(parameter.shape))
    return model


def a_model(**changes: object) -> tuple[VMA, Memory | None]:
    model = spread_(build_vma(small_mlp(height=2, width=2, **changes)))
    if model.config.learned_items:
        return model, None
    return model, Memory.of(bits(4, 2, 2), labels=[0, 0, 1, 2])


@torch.no_grad()
def joint(model: VMA, memory: Memory | None) -> Tensor:
    """log p(a,x) for every address and each of the 16 images, by quadrature over z."""
    chosen, p_a = model.memory(memory), model.prior(memory)
    points, log_weights = quadrature(61, model.config.latent)
    rows = []
    for a in range(len(chosen)):
        m = chosen.items[a][None]
        prior = DiagonalGaussian.of_statistics(reference_prior(model, m))
        zs = prior.mean + prior.log_std.exp() * points
        features = reference_decoder(model, m.expand(len(zs), *m.shape[1:]), zs)
        log_p_x = torch.stack([reference_log_prob(model, x, features) for x in ALL_IMAGES])
        rows.append(p_a.log_probs[a] + torch.logsumexp(log_weights + log_p_x, 1))
    return torch.stack(rows)


@pytest.mark.parametrize(
    "changes", [{}, {"tied": True}, {"prior": "flat"}, {"learned_items": 3}, {"likelihood": "reading-order"}]
)
def test_the_expected_gradient_is_that_of_the_divergence_from_the_true_posterior(
    changes: dict[str, object],
) -> None:
    """Σ_{a,x} p(a,x) ∇[−log q(a|x)] = ∇ Σ_x p(x) KL(p(a|x) ‖ q(a|x)), over all addresses and images."""
    model, memory = a_model(**changes)
    log_joint, chosen, p_a = joint(model, memory), model.memory(memory), model.prior(memory)
    torch.testing.assert_close(log_joint.exp().sum(), torch.ones(()), rtol=0, atol=1e-9)
    parameters = list(model.addressing.parameters())
    total = torch.zeros(sum(p.numel() for p in parameters))
    for a, x in itertools.product(range(len(chosen)), range(len(ALL_IMAGES))):
        one = Dreams(chosen, p_a, torch.tensor([a]), ALL_IMAGES[x][None])
        total += log_joint[a, x].exp() * flat_gradient(
            -recognise_dreams(model, one).log_q_a.mean(), parameters
        )
    log_q = model.posterior(ALL_IMAGES, memory).log_probs.T
    log_posterior = log_joint - log_joint.logsumexp(0)
    divergence = (log_joint.exp() * (log_posterior - log_q)).sum()
    torch.testing.assert_close(total, flat_gradient(divergence, parameters), rtol=1e-8, atol=1e-10)
    assert total.norm() > 1e-3


@pytest.mark.parametrize("changes", [{}, {"learned_items": 3}, {"likelihood": "reading-order"}])
def test_dreams_are_draws_of_the_joint_distribution(changes: dict[str, object]) -> None:
    model, memory = a_model(**changes)
    expected = joint(model, memory).exp().flatten()
    dreams = dream(model, memory, 40_000, generator=torch.Generator().manual_seed(3))
    image = (dreams.images.flatten(1) * torch.tensor([8.0, 4.0, 2.0, 1.0])).sum(1).long()
    counts = torch.bincount(dreams.addresses * 16 + image, minlength=len(expected))
    assert chi_square_p_value(counts, expected) > LEVEL


def test_a_grey_dream_is_the_probability_of_ink() -> None:
    model, memory = a_model()
    dreams = dream(model, memory, 200, binary=False, generator=torch.Generator().manual_seed(3))
    assert not bool(((dreams.images == 0) | (dreams.images == 1)).any())


def test_dreaming_has_no_gradient_and_needs_none() -> None:
    model, memory = a_model()
    dreams = dream(model, memory, 20)
    assert not dreams.images.requires_grad
    assert not dreams.p_a.log_probs.requires_grad
    recognise_dreams(model, dreams).loss.backward()
    assert all(parameter.grad is None for parameter in model.networks.parameters())
    assert all(parameter.grad is not None for parameter in model.addressing.parameters())


def test_p_a_is_held_where_it_was() -> None:
    """KL(p(a) ‖ p'(a)) is zero while keys are the same, and the exact divergence when they are others."""
    model, memory = a_model()
    dreams = dream(model, memory, 20)
    assert float(recognise_dreams(model, dreams).kl_p_a.detach()) == pytest.approx(0.0, abs=1e-12)
    before = model.prior(memory).log_probs.detach()
    spread_(model)
    after = model.prior(memory).log_probs
    expected = (before.exp() * (before - after)).sum()
    torch.testing.assert_close(recognise_dreams(model, dreams).kl_p_a, expected, rtol=1e-10, atol=1e-12)
    flat, _ = a_model(prior="flat")
    assert float(recognise_dreams(flat, dream(flat, memory, 20)).kl_p_a) == 0.0


def test_what_is_found_is_counted() -> None:
    model, memory = a_model()
    assert memory is not None
    images = bits(30, 2, 2)
    best = model.posterior(images, memory).log_probs.argmax(-1)
    p_a = model.prior(memory)
    assert bool(recognise_dreams(model, Dreams(memory, p_a, best, images)).found.all())
    other = torch.where(best == 0, 1, torch.where(best == 1, 0, (best + 1) % 4))  # 0 and 1 are of one class
    found = recognise_dreams(model, Dreams(memory, p_a, other, images))
    assert not bool(found.found.any())
    assert found.found_class.tolist() == [int(b) < 2 for b in best]


def test_warps_change_what_is_recalled_and_not_what_is_dreamt() -> None:
    model, memory = a_model()
    assert memory is not None
    items = memory.items.clone()
    dreams = dream(model, memory, 20)
    images = dreams.images.clone()
    warped = recognise_dreams(model, dreams, look(strength(1.0), torch.Generator().manual_seed(1)))
    assert not warped.log_q_a.allclose(recognise_dreams(model, dreams).log_q_a)
    assert dreams.images.equal(images)
    assert dreams.memory.items.equal(items)
