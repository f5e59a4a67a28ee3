"""The VAE against quadrature over z, a closed form, and its own definition."""

import math

import pytest
import torch

from tests.helpers.baseline_oracles import every_image, exact_log_p_x, image_number, make_louder
from tests.helpers.oracles import (
    LEVEL,
    SIGMAS,
    bits,
    chi_square_p_value,
    episode,
    flat_gradient,
    small_convolutional,
    small_mlp,
)
from vma import ESTIMATORS, BoundTerms, InputError, Memory, ModelConfig, decomposition, elbo
from vma import multi_sample_bound as bound_of
from vma.baselines import VAE

CONFIGS = {
    "mlp": small_mlp(),
    "convolutional": small_convolutional(),
    "modern": small_convolutional(style="modern"),
    "learned": small_mlp(learned_items=3),
    "paper size": ModelConfig(maps=4),
}


def loud(model: VAE) -> VAE:
    """Make z matter, so that the gaps between the bounds are larger than the noise."""
    make_louder(model.decoder)
    return model


def test_elbo_below_multi_sample_below_exact() -> None:
    model = loud(VAE(small_mlp()))
    x = bits(1, 4, 4)
    exact, rows = float(exact_log_p_x(model, x)), 6000
    many = x.expand(rows, -1, -1)
    per_k = [model.bound(many, None, k) for k in (1, 2, 8)]
    means = [float(b.mean()) for b in per_k]
    errors = [float(b.std()) / math.sqrt(rows) for b in per_k]
    assert means[0] < means[1] < means[2]
    assert all(mean < exact + SIGMAS * error for mean, error in zip(means, errors, strict=True))
    assert exact - means[2] < 0.5 * (exact - means[0])
    weight = (per_k[2] - exact).exp()  # E[exp L] = p(x)
    assert abs(float(weight.mean()) - 1) < SIGMAS * float(weight.std()) / math.sqrt(rows)


def test_the_bound_is_exact_at_the_true_posterior() -> None:
    """With a decoder that does not hear z, p(z|x) = N(0, I): every weight is p(x), a product of pixels."""
    model = VAE(small_mlp())
    with torch.no_grad():
        model.decoder[0][0].weight.zero_()
        model.encoder[-1][-1].weight.zero_()
    x = bits(3, 4, 4)
    terms = model.terms(x, samples=4)
    pixels = torch.distributions.Bernoulli(logits=model.decode(torch.zeros(1, 1, 2))[0, 0, 0])
    log_p_x = pixels.log_prob(x).sum((1, 2))
    torch.testing.assert_close(terms.log_w, log_p_x[:, None].expand(-1, 4))
    torch.testing.assert_close(elbo(terms), log_p_x)
    torch.testing.assert_close(terms.kl_z, torch.zeros(3, 4))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_terms_are_the_densities_of_z_and_x(config: ModelConfig) -> None:
    model = VAE(config)
    x, noise = bits(2, *config.image_shape), torch.randn(2, 3, config.latent)
    terms = model.terms_at(x, None, noise)
    q = model.posterior(x)
    for b in range(2):
        normal = torch.distributions.Normal(q.mean[b], q.log_std[b].exp())
        standard = torch.distributions.Normal(torch.zeros(config.latent), torch.ones(config.latent))
        z = q.mean[b] + q.log_std[b].exp() * noise[b]
        torch.testing.assert_close(terms.log_q_z[b], normal.log_prob(z).sum(-1))
        torch.testing.assert_close(terms.log_p_z[b], standard.log_prob(z).sum(-1))
        kl = torch.distributions.kl_divergence(normal, standard).sum()
        torch.testing.assert_close(terms.kl_z[b], kl.expand(3))
        pixels = torch.distributions.Bernoulli(logits=model.decode(z[None])[0, :, 0])
        torch.testing.assert_close(terms.log_p_x[b], pixels.log_prob(x[b]).sum((1, 2)))


def test_there_is_no_address() -> None:
    terms = VAE(small_mlp()).terms(bits(2, 4, 4), samples=3)
    assert terms.p_a is None
    assert terms.q_a is None
    assert not terms.log_q_a.requires_grad
    parts = decomposition(terms)
    assert float(terms.log_p_a.abs().sum() + terms.log_q_a.abs().sum() + parts.kl_a.abs().sum()) == 0
    torch.testing.assert_close(terms.log_mass, torch.full((2, 3), -math.log(3)))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_every_parameter_gets_a_gradient(config: ModelConfig) -> None:
    model = VAE(config)
    model(bits(3, *config.image_shape)).loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert float(parameter.grad.abs().max()) > 0, name


def log_weights(model: VAE, x: torch.Tensor, noise: torch.Tensor, held: bool = False) -> torch.Tensor:
    """log p(z) p(x|z) / q(z|x) at z = μ + σε, by torch.distributions; q fixed in its density if it is `held`."""
    q = model.posterior(x)
    mean, std = q.mean.unsqueeze(1), q.log_std.exp().unsqueeze(1)
    z = mean + std * noise
    q_mean, q_std = (mean.detach(), std.detach()) if held else (mean, std)
    pixels = torch.distributions.Bernoulli(
        logits=model.decoder(z.flatten(0, 1))[:, 0].unflatten(0, z.shape[:2])
    )
    log_p_z = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(-1)
    log_q_z = torch.distributions.Normal(q_mean, q_std).log_prob(z).sum(-1)
    return log_p_z + pixels.log_prob(x.unsqueeze(1).expand(pixels.logits.shape)).sum((2, 3)) - log_q_z


def pathwise_gradient(model: VAE, x: torch.Tensor, noise: torch.Tensor, objective: str) -> torch.Tensor:
    """∇ mean_k log w_k for the ELBO, ∇ log mean_k w_k for the multi-sample bound."""
    log_w = log_weights(model, x, noise)
    bound = log_w.mean(1) if objective == "elbo" else log_w.exp().mean(1).log()
    return flat_gradient(bound.mean(), list(model.parameters()))


def dreg_gradient(model: VAE, x: torch.Tensor, noise: torch.Tensor, objective: str) -> torch.Tensor:
    """Σ_k c_k ∇ log w_k along z alone: for q(z|x) with c = 1/K or ω², for p(x|z) with c = 1/K or ω."""
    log_w = log_weights(model, x, noise, held=True)
    omega = log_w.detach().softmax(1)
    flat = torch.full_like(omega, 1 / omega.shape[1])
    q, p = (flat, flat) if objective == "elbo" else (omega.square(), omega)
    parts = ((q, model.encoder), (p, model.decoder))
    return torch.cat([flat_gradient((c * log_w).sum(1).mean(), list(part.parameters())) for c, part in parts])


@pytest.mark.parametrize("latent_gradient", ["pathwise", "dreg"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_is_the_gradient_of_its_own_objective(name: str, latent_gradient: str) -> None:
    model = loud(VAE(small_mlp()))
    x, noise, objective = bits(3, 4, 4), torch.randn(3, 5, 2), ESTIMATORS[name].objective
    model.noise = lambda *shape: noise  # type: ignore[method-assign]
    given = model(x, None, 5, estimator=name, latent_gradient=latent_gradient)
    bound = elbo(given.terms) if objective == "elbo" else bound_of(given.terms)
    torch.testing.assert_close(given.bound, bound)
    gradient = {"pathwise": pathwise_gradient, "dreg": dreg_gradient}[latent_gradient]
    both = {each: gradient(model, x, noise, each) for each in ("multi-sample", "elbo")}
    found = flat_gradient(given.surrogate, list(model.parameters()))
    torch.testing.assert_close(found, both[objective], rtol=1e-9, atol=1e-11)
    assert float((both["elbo"] - both["multi-sample"]).norm()) > 0.01 * float(found.norm())


def test_one_sample_is_the_elbo() -> None:
    model = VAE(small_mlp())
    given = model(bits(2, 4, 4), None, 1)
    torch.testing.assert_close(given.bound, elbo(given.terms))


def test_the_memory_is_not_looked_at() -> None:
    model = VAE(small_mlp())
    x, memory = episode(model.config, 2, 3)
    seeds = [torch.Generator().manual_seed(3) for _ in range(4)]
    assert torch.equal(model.bound(x, memory, generator=seeds[0]), model.bound(x, generator=seeds[1]))
    drawn = [model.sample(m, 5, generator=g).images for m, g in zip((memory, None), seeds[2:], strict=True)]
    assert torch.equal(*drawn)


def test_sampled_images_have_the_exact_probabilities() -> None:
    model = loud(VAE(small_mlp(height=1, width=2)))
    exact = exact_log_p_x(model, every_image(1, 2)).exp()
    torch.testing.assert_close(exact.sum(), torch.tensor(1.0))
    drawn = model.sample(samples=20_000)
    counts = torch.bincount(image_number(drawn.images), minlength=4)
    assert chi_square_p_value(counts, exact) > LEVEL
    assert drawn.addresses.tolist() == [0] * 20_000
    assert drawn.probabilities.shape == (20_000, 1, 2)


@pytest.mark.parametrize("size", [16, 17, 26, 28, 31])
def test_the_decoder_comes_back_to_the_image_size(size: int) -> None:
    config = ModelConfig(height=size, width=size + 3, maps=2, hidden=(4,), latent=2, matching=3)
    assert VAE(config).sample(samples=2).images.shape == (2, size, size + 3)


def test_he_initialisation_counts_the_inputs_without_m() -> None:
    """Mean square of the weights of the decoder's layers: 2 / fan-in, where no half is left for m."""
    model = VAE(ModelConfig())
    fans = [64 * 9 / 4, 64 * 9] * 3  # a stride of 2 spreads each input over 9/4 outputs' worth of the kernel
    for layer, fan_in in zip(model.decoder.layers, fans, strict=True):
        power = layer.weight.detach().square() * fan_in / 2
        assert abs(float(power.mean()) - 1) < SIGMAS * math.sqrt(2 / power.numel())
    assert float(model.posterior(bits(8, 26, 26)).mean.detach().abs().max()) < 2


def test_bad_input() -> None:
    model = VAE(small_mlp())
    x = bits(2, 4, 4)
    with pytest.raises(InputError, match=r"targets have the shape \[5, 5\], but the model works on \[4, 4\]"):
        model(bits(2, 5, 5))
    with pytest.raises(InputError, match="targets hold NaN"):
        model(torch.full((2, 4, 4), math.nan))
    with pytest.raises(InputError, match="K >= 1"):
        model.terms(x, samples=0)
    with pytest.raises(InputError, match="K >= 1"):
        model.sample(samples=0)
    with pytest.raises(InputError, match="no addresses: sampling must be 'independent', not 'all'"):
        model.terms(x, sampling="all")
    with pytest.raises(InputError, match="Unknown estimator 'vimc'"):
        model(x, estimator="vimc")
    with pytest.raises(InputError, match="Unknown latent gradient 'path'"):
        model(x, latent_gradient="path")


def test_a_seed_repeats_a_call_and_the_type_is_the_weights() -> None:
    model = VAE(small_mlp()).float()
    x = bits(2, 4, 4)
    first, second = (model.terms(x, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert isinstance(first, BoundTerms)
    assert torch.equal(first.log_w, second.log_w)
    assert first.log_w.dtype == torch.float32
    assert torch.isfinite(bound_of(first)).all()
    assert model.sample(Memory.of(x), 2).images.dtype == torch.float32
