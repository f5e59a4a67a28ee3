"""Bounds against closed forms, enumeration and quadrature."""

import math

import pytest
import torch

from tests.helpers.oracles import (
    SIGMAS,
    Table,
    distributions,
    episode,
    exact_log_marginal,
    quadrature,
    small_convolutional,
    small_mlp,
    tuples,
)
from vma import AddressDistribution, BoundTerms, Memory, decomposition, effective_sample_size, elbo
from vma import multi_sample_bound as bound_of
from vma.bounds import log_mean_exp
from vma.build import build_vma
from vma.latents import DiagonalGaussian
from vma.likelihoods.bernoulli import bernoulli_log_prob
from vma.reads import all_addresses, draw, independent


def linear_gaussian(x: torch.Tensor, exact: bool) -> tuple[BoundTerms, torch.Tensor]:
    """p(a) = π, p(z|a) = N(b_a, 1), p(x|z) = N(x; 2z, σ²): everything in closed form."""
    prior = torch.tensor([0.2, 0.5, 0.3]).log()
    b, slope, variance = torch.tensor([-1.0, 0.5, 2.0]), 2.0, 0.49
    marginal = torch.distributions.Normal(slope * b, math.sqrt(slope**2 + variance))
    joint = prior + marginal.log_prob(x[:, None])
    posterior = AddressDistribution(joint.log_softmax(-1))
    if not exact:
        posterior = AddressDistribution((0.5 * joint).log_softmax(-1))
    reads = independent(posterior, 4, Memory.of(torch.zeros(3, 1, 1)))
    b_a, precision = b[reads.addresses], 1 + slope**2 / variance
    mean = (b_a + slope * x[:, None] / variance) / precision + (0.0 if exact else 0.1)
    q_z = DiagonalGaussian(mean[..., None], torch.full((*mean.shape, 1), -0.5 * math.log(precision)))
    p_z = DiagonalGaussian(b_a[..., None], torch.zeros(*mean.shape, 1))
    z = q_z.sample(torch.randn(*mean.shape, 1))
    log_p_x = torch.distributions.Normal(slope * z[..., 0], math.sqrt(variance)).log_prob(x[:, None])
    p_a = AddressDistribution(prior)
    terms = BoundTerms(
        reads.log_prob(p_a), reads.log_prob(posterior), p_z.log_prob(z), q_z.log_prob(z), log_p_x,
        reads.log_mass, q_z.kl(p_z), p_a, posterior,
    )  # fmt: skip
    return terms, joint.logsumexp(-1)


def test_bounds_are_tight_at_the_true_posterior() -> None:
    x = torch.randn(50) * 3
    terms, log_p_x = linear_gaussian(x, exact=True)
    torch.testing.assert_close(terms.log_w, log_p_x[:, None].expand(-1, 4), rtol=0, atol=1e-12)
    torch.testing.assert_close(elbo(terms), log_p_x, rtol=0, atol=1e-12)
    torch.testing.assert_close(bound_of(terms), log_p_x, rtol=0, atol=1e-12)
    torch.testing.assert_close(effective_sample_size(terms), torch.full((50,), 4.0))


def test_bounds_are_ordered_away_from_it() -> None:
    x = torch.full((20_000,), 1.7)
    terms, log_p_x = linear_gaussian(x, exact=False)
    gaps = [bound_of(terms) - elbo(terms), log_p_x - bound_of(terms)]
    assert bool((gaps[0] >= -1e-12).all())  # Jensen, draw by draw
    assert float(gaps[0].mean()) > 1e-3
    assert float(gaps[1].mean()) > SIGMAS * float(gaps[1].std()) / math.sqrt(len(x))


def test_elbo_below_multi_sample_below_exact() -> None:
    """On a model of networks, with log p(x|M) by enumeration and quadrature."""
    config = small_mlp()
    model = build_vma(config)
    with torch.no_grad():  # make z matter, so that the gaps are larger than the noise
        for name, parameter in model.networks.named_parameters():
            if "decoder" in name or "prior" in name:
                parameter.mul_(1.6)
    x, memory = episode(config, 1, 3)
    exact = exact_log_marginal(model, x, memory)
    rows = 6000
    many = x.expand(rows, -1, -1)
    with torch.no_grad():
        per_k = [bound_of(model.terms(many, memory, k)) for k in (1, 2, 8)]
        summed = bound_of(model.terms(many, memory, 2, sampling="all"))
    means = [float(b.mean()) for b in (*per_k, summed)]
    errors = [float(b.std()) / math.sqrt(rows) for b in (*per_k, summed)]
    assert means[0] < means[1] < means[2]
    for mean, error in zip(means, errors, strict=True):
        assert mean < float(exact) + SIGMAS * error
    assert float(exact) - means[2] < 0.5 * (float(exact) - means[0])
    weight = (per_k[2] - exact).exp()  # E[exp L] = p(x): the estimate itself is unbiased
    assert abs(float(weight.mean()) - 1) < SIGMAS * float(weight.std()) / math.sqrt(rows)


def test_exact_bound_sums_over_addresses() -> None:
    """With z by quadrature at each address, the sum over a is log p(x|M) as far as the quadrature goes."""
    config = small_mlp(latent=1)
    model = build_vma(config)
    x, memory = episode(config, 1, 3)
    chosen, p_a, q_a = distributions(model, x, memory)
    points, log_weights = quadrature(4001, 1)
    reads = all_addresses(q_a, len(points), chosen)
    noise = points.repeat(3, 1).unsqueeze(0)
    terms = model.terms_at(x, chosen, p_a, q_a, reads, noise)
    mass = q_a.log_prob(reads.addresses) + log_weights.repeat(3)
    total = torch.logsumexp(mass + terms.log_w, -1)
    torch.testing.assert_close(total, exact_log_marginal(model, x, memory, 4001), rtol=0, atol=1e-5)


def test_exact_bound_is_close_with_many_z() -> None:
    model = build_vma(small_mlp())
    x, memory = episode(model.config, 3, 4)
    exact = exact_log_marginal(model, x, memory)
    torch.testing.assert_close(model.exact_bound(x, memory, 4000), exact, rtol=0, atol=0.02)
    torch.testing.assert_close(model.bound(x, memory, 20_000), exact, rtol=0, atol=0.05)


def test_multi_sample_bound_is_the_log_of_the_mean_weight() -> None:
    table = Table(items=4)
    for a, _ in tuples(table.log_q, 3):
        terms = table.terms(table.reads(a))
        wanted = terms.log_w.exp().mean(1).log()
        torch.testing.assert_close(bound_of(terms), wanted)
        torch.testing.assert_close(log_mean_exp(terms.log_w), wanted)


def test_decomposition_adds_up_to_the_elbo() -> None:
    """With every address read, reconstruction − KL_a − KL_z is the ELBO, up to the sampling of z."""
    model = build_vma(small_mlp())
    x, memory = episode(model.config, 2, 3)
    with torch.no_grad():
        terms = model.terms(x, memory, 20_000, sampling="all")
    parts = decomposition(terms)
    total = parts.reconstruction - parts.kl_a - parts.kl_z
    spread = float(terms.log_w.std()) / math.sqrt(20_000)
    torch.testing.assert_close(total, elbo(terms), rtol=0, atol=SIGMAS * spread)
    log_q, log_p = model.posterior(x, memory).log_probs, model.prior(memory).log_probs
    torch.testing.assert_close(parts.kl_a, (log_q.exp() * (log_q - log_p)).sum(-1))


def test_decomposition_falls_back_on_samples() -> None:
    terms = Table(items=4).terms(Table(items=4).reads((0, 2)))
    parts = decomposition(terms)
    torch.testing.assert_close(parts.kl_a, (terms.log_q_a - terms.log_p_a).mean(1))
    torch.testing.assert_close(parts.kl_z, torch.zeros(1))


def test_gaussians_against_torch() -> None:
    p = DiagonalGaussian(torch.randn(5, 3), torch.randn(5, 3))
    q = DiagonalGaussian(torch.randn(5, 3), torch.randn(5, 3))
    reference = [torch.distributions.Normal(d.mean, d.log_std.exp()) for d in (p, q)]
    z = torch.randn(5, 3)
    torch.testing.assert_close(p.log_prob(z), reference[0].log_prob(z).sum(-1))
    wanted = torch.distributions.kl_divergence(reference[1], reference[0]).sum(-1)
    torch.testing.assert_close(q.kl(p), wanted)
    wild = DiagonalGaussian.of_statistics(torch.full((1, 2), 1e9))
    assert bool(torch.isfinite(wild.log_prob(torch.zeros(1, 1))).all())


def test_bernoulli_against_torch() -> None:
    logits, x = torch.randn(3, 2, 5, 4) * 30, (torch.rand(3, 5, 4) < 0.5).double()
    wanted = torch.distributions.Bernoulli(logits=logits).log_prob(x[:, None].expand(-1, 2, -1, -1))
    found = bernoulli_log_prob(x.repeat_interleave(2, 0), logits.flatten(0, 1)).view(3, 2)
    torch.testing.assert_close(found, wanted.sum((2, 3)))


@pytest.mark.parametrize("sampling", ["independent", "all", "without-replacement", "straight-through"])
def test_every_sampling_estimates_expectations_under_q_without_bias(sampling: str) -> None:
    log_q, values, rows = torch.randn(5).log_softmax(0), torch.randn(5), 20_000
    q_a = AddressDistribution(log_q.expand(rows, -1))
    reads = draw(q_a, 3, Memory.of(torch.zeros(5, 1, 1)), sampling, None)
    estimates = (reads.log_mass.exp() * values[reads.addresses]).sum(1)
    error = float(estimates.std()) / math.sqrt(rows)
    assert abs(float(estimates.mean() - (log_q.exp() * values).sum())) <= SIGMAS * error + 1e-12


@pytest.mark.parametrize("gradient", [True, False])
@pytest.mark.parametrize("kind", ["mlp", "paper", "modern"])
def test_mixed_precision_keeps_the_bound(kind: str, gradient: bool) -> None:
    """Networks in bfloat16, sums and similarities in float32: the bound is off by the networks' rounding alone."""
    torch.set_default_dtype(torch.float32)
    model = build_vma(small_mlp(height=12, width=12) if kind == "mlp" else small_convolutional(style=kind))
    x, memory = episode(model.config, 4, 5)
    x = x.float()
    logits = 12 * (2 * x - 1) + torch.randn(x.shape)
    chosen, p_a, q_a = distributions(model, x, memory)
    reads, noise = independent(q_a, 3, chosen), torch.randn(4, 3, model.config.latent)
    full = model.terms_at(x, chosen, p_a, q_a, reads, noise)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.set_grad_enabled(gradient):
        mixed = bernoulli_log_prob(x, logits)
        terms, mixed_q_a = model.terms_at(x, chosen, p_a, q_a, reads, noise), model.posterior(x, memory)
    torch.testing.assert_close(mixed, bernoulli_log_prob(x, logits))
    assert terms.log_w.dtype == torch.float32
    torch.testing.assert_close(bound_of(terms), bound_of(full), rtol=0.01, atol=0)
    assert not torch.equal(terms.log_w, full.log_w)
    torch.testing.assert_close(mixed_q_a.log_probs, q_a.log_probs, rtol=0, atol=0.05)
