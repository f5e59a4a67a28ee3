"""Generative matching networks against a hop at a time, quadrature over z, and conditioning one by one."""

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
from tests.test_fast_path import Counting
from vma import ESTIMATORS, BoundTerms, InputError, Memory, ModelConfig, elbo
from vma.baselines import VAE, GenerativeMatchingNetwork
from vma.baselines.matching import Controller
from vma.baselines.published import Query, Section
from vma.latents import DiagonalGaussian
from vma.memory import PrecedingImages
from vma.runs.presets import PRESETS
from vma.similarity import NORM_FLOOR

CONFIGS = {
    "mlp": small_mlp(),
    "mlp cosine": small_mlp(similarity="cosine"),
    "convolutional": small_convolutional(),
    "modern": small_convolutional(style="modern"),
    "28": ModelConfig(height=28, width=28, maps=4, hidden=(20,), latent=5, matching=8),
}
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
NAMES = ("log_p_a", "log_q_a", "log_p_z", "log_q_z", "log_p_x", "log_mass", "kl_z")


# --- one target, one sample, one hop at a time -------------------------------------------------------------


def reference_gru(cell: torch.nn.GRUCell, r: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    of_r = (cell.weight_ih @ r + cell.bias_ih).chunk(3)
    of_h = (cell.weight_hh @ h + cell.bias_hh).chunk(3)
    reset, keep = torch.sigmoid(of_r[0] + of_h[0]), torch.sigmoid(of_r[1] + of_h[1])
    return keep * h + (1 - keep) * torch.tanh(of_r[2] + reset * of_h[2])


def reference_match(
    controller: Controller, f: torch.nn.Module, psi: list[torch.Tensor], query: torch.Tensor
) -> torch.Tensor:
    """[r, h] for one query, by equation 6."""
    psi, h = [controller.pseudo_input, *psi], controller.start
    for _ in range(controller.hops):
        e, scores = f(torch.cat((query, h))), []
        for item in psi:
            g = controller.key(item)
            score = g @ e / g.norm().clamp_min(NORM_FLOOR)
            scores.append(score / e.norm() if controller.similarity.normalize_queries else score)
        a = torch.stack(scores).softmax(0)
        r = sum(weight * item for weight, item in zip(a, psi, strict=True))
        h = reference_gru(controller.cell, r, h)
    return torch.cat((r, h))


def reference_terms(
    model: GenerativeMatchingNetwork, x: torch.Tensor, items: torch.Tensor, noise: torch.Tensor
) -> dict[str, torch.Tensor]:
    """log p(z|X), log q(z|x,X), log p(x|z,X) and the KL of one target, by torch.distributions."""
    psi = [model.features(item[None])[0] for item in items]
    own, shared = model.features(x[None])[0], model.shared_controller
    nothing = torch.zeros(0)
    p = reference_match(model.prior_controller, model.prior_query, psi, nothing)
    q = torch.cat((own, reference_match(shared, model.recognition_query, psi, own)))
    p_z, q_z = (
        torch.distributions.Normal(d.mean, d.log_std.exp())
        for d in map(DiagonalGaussian.of_statistics, (model.prior_head(p), model.recognition_head(q)))
    )
    rows = []
    for epsilon in noise:
        z = q_z.mean + q_z.stddev * epsilon
        v = torch.cat((z, reference_match(shared, model.likelihood_query, psi, z)))
        pixels = torch.distributions.Bernoulli(logits=model.decoder(v[None])[0])
        rows.append((p_z.log_prob(z).sum(), q_z.log_prob(z).sum(), pixels.log_prob(x).sum()))
    log_p_z, log_q_z, log_p_x = (torch.stack(column) for column in zip(*rows, strict=True))
    kl = torch.distributions.kl_divergence(q_z, p_z).sum().expand(len(noise))
    return {"log_p_z": log_p_z, "log_q_z": log_q_z, "log_p_x": log_p_x, "kl_z": kl}


@pytest.mark.parametrize("items", [0, 1, 3])
@every_config
def test_terms_equal_the_reference(config: ModelConfig, items: int) -> None:
    model = GenerativeMatchingNetwork(config, hops=3, prior_hops=2)
    x, noise = bits(2, *config.image_shape), torch.randn(2, 3, config.latent)
    conditioning = bits(items, *config.image_shape)
    terms = model.terms_at(x, model.condition(Memory.of(conditioning) if items else None), noise)
    for b in range(2):
        for name, wanted in reference_terms(model, x[b], conditioning, noise[b]).items():
            torch.testing.assert_close(getattr(terms, name)[b], wanted, rtol=1e-10, atol=1e-10)


# --- sets --------------------------------------------------------------------------------------------------


def terms_given(model: GenerativeMatchingNetwork, x: torch.Tensor, memory: Memory | None) -> BoundTerms:
    noise = torch.randn(len(x), 3, model.config.latent, generator=torch.Generator().manual_seed(2))
    return model.terms_at(x, model.condition(memory), noise)


def assert_same(given: BoundTerms, wanted: BoundTerms) -> None:
    for name in NAMES:
        torch.testing.assert_close(getattr(given, name), getattr(wanted, name), rtol=1e-12, atol=1e-11)


@every_config
def test_order_does_not_matter_and_masked_items_do_not_count(config: ModelConfig) -> None:
    model = GenerativeMatchingNetwork(config)
    x, memory = episode(config, 2, 5)
    assert memory is not None
    wanted = terms_given(model, x, memory)
    assert_same(terms_given(model, x, memory.keep(torch.randperm(5))), wanted)
    mask = torch.tensor([True, False, True, True, False])
    masked = terms_given(model, x, Memory.of(memory.items, mask=mask))
    assert_same(masked, terms_given(model, x, memory.keep(mask)))
    assert float((masked.log_p_x - wanted.log_p_x).detach().abs().min()) > 1e-6


def test_each_part_looks_at_the_set() -> None:
    """Prior, recognition and likelihood all change with X, also from the empty set to one item."""
    model = GenerativeMatchingNetwork(small_mlp())
    x, memory = episode(model.config, 2, 1)
    nothing, one = model.condition(None), model.condition(memory)
    z = torch.randn(2, 3, 2)
    for function in (
        lambda given: model.prior(given).mean,
        lambda given: model.posterior(x, given).mean,
        lambda given: model.decode(z, given),
    ):
        assert float((function(nothing) - function(one)).detach().abs().max()) > 1e-4


def test_the_pseudo_input_is_all_that_an_empty_set_has() -> None:
    model = GenerativeMatchingNetwork(small_mlp())
    condition = model.condition()
    assert condition.shared.keys.shape == (1, 1, 6)
    assert torch.equal(condition.shared.prototypes[0, 0], model.shared_controller.pseudo_input)
    query = torch.randn(1, 2, 3, 6)
    assert torch.equal(
        model.shared_controller.weights(query, condition.shared).log_probs, torch.zeros(1, 2, 3, 1)
    )
    assert model.sample(samples=3).images.shape == (3, 4, 4)


# --- sequences ---------------------------------------------------------------------------------------------


def sequences(x: torch.Tensor) -> tuple[torch.Tensor, PrecedingImages]:
    """All images, and that the memory of each is those before it."""
    return x.flatten(0, 1), PrecedingImages(x.shape[1])


@every_config
def test_a_sequence_conditions_each_image_on_those_before(config: ModelConfig) -> None:
    model = GenerativeMatchingNetwork(config)
    x, noise = bits(2, 4, *config.image_shape), torch.randn(2, 4, 3, config.latent)
    model.noise = lambda batch, samples, generator=None: noise.flatten(0, 1)  # type: ignore[method-assign]
    terms = model.terms(*sequences(x), 3)
    for s in range(2):
        for t in range(4):
            memory = Memory.of(x[s, :t]) if t else None
            wanted = model.terms_at(x[s, t][None], model.condition(memory), noise[s, t][None])
            for name in NAMES:
                given = getattr(terms, name)[4 * s + t]
                torch.testing.assert_close(given, getattr(wanted, name)[0], rtol=1e-11, atol=1e-11)


def test_a_sequence_is_trained_with_the_sum_of_its_elbos() -> None:
    model = GenerativeMatchingNetwork(small_mlp())
    x = bits(3, 5, 4, 4)
    given = model(*sequences(x), 1, generator=torch.Generator().manual_seed(1))
    of_time = elbo(given.terms).view(3, 5)
    torch.testing.assert_close(5 * given.surrogate, of_time.sum(1).mean())
    bound = model.bound(*sequences(x), 1, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(bound.view(3, 5), of_time.detach())
    assert bool(torch.isfinite(model(*sequences(x), 3, latent_gradient="dreg").surrogate))


@pytest.mark.parametrize("latent_gradient", ["pathwise", "dreg"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_sequence_is_trained_with_the_objective_of_its_estimator(name: str, latent_gradient: str) -> None:
    """∇ mean_k log w_k, or ∇ log mean_k w_k, of every image in turn; with dreg, z's share times ω_k once more."""
    model = GenerativeMatchingNetwork(small_mlp())
    make_louder(model.decoder)
    x, parameters = bits(2, 3, 4, 4), list(model.parameters())

    def seed() -> torch.Generator:
        return torch.Generator().manual_seed(1)

    def wanted(objective: str) -> torch.Tensor:
        terms = model.terms(*sequences(x), 4, hold_q_z=latent_gradient == "dreg", generator=seed())
        log_w = terms.log_p_z + terms.log_p_x - terms.log_q_z
        omega = log_w.detach().softmax(1).unsqueeze(-1)
        if latent_gradient == "dreg" and objective == "multi-sample":
            terms.z.register_hook(lambda gradient: gradient * omega)
        bound = log_w.mean(1) if objective == "elbo" else log_w.exp().mean(1).log()
        return flat_gradient(bound.view(2, 3).sum(1).mean(), parameters)

    options = {"estimator": name, "latent_gradient": latent_gradient, "generator": seed()}
    found = flat_gradient(3 * model(*sequences(x), 4, **options).surrogate, parameters)
    both = {objective: wanted(objective) for objective in ("multi-sample", "elbo")}
    torch.testing.assert_close(found, both[ESTIMATORS[name].objective], rtol=1e-9, atol=1e-11)
    assert float((both["elbo"] - both["multi-sample"]).norm()) > 0.01 * float(found.norm())


def test_features_are_computed_once_per_image() -> None:
    model = GenerativeMatchingNetwork(small_convolutional())
    x, memory = episode(model.config, 3, 6)
    model.features = counting = Counting(model.features)
    model.terms(x, memory, 4)
    assert counting.rows == 6 + 3
    model.terms(*sequences(x[None]), 4)
    assert counting.rows == 6 + 3 + 3


# --- the model ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sequence", [False, True], ids=["memory", "sequence"])
@every_config
def test_every_parameter_gets_a_gradient(config: ModelConfig, sequence: bool) -> None:
    model = GenerativeMatchingNetwork(config)
    x, memory = episode(config, 4, 4)
    given = model(*sequences(x[None]), 1) if sequence else model(x, memory, 2)
    given.loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert float(parameter.grad.abs().max()) > 0, name


@pytest.mark.parametrize("items", [0, 3])
def test_elbo_below_multi_sample_below_exact(items: int) -> None:
    model = GenerativeMatchingNetwork(small_mlp())
    make_louder(model.decoder)
    x, memory = bits(1, 4, 4), Memory.of(bits(items, 4, 4)) if items else None
    exact, rows = float(exact_log_p_x(model, x, memory)), 4000
    many = x.expand(rows, -1, -1)
    per_k = [model.bound(many, memory, k) for k in (1, 8)]
    means = [float(b.mean()) for b in per_k]
    assert means[0] < means[1] < exact + SIGMAS * float(per_k[1].std()) / math.sqrt(rows)
    weight = (per_k[1] - exact).exp()  # E[exp L] = p(x|X)
    assert abs(float(weight.mean()) - 1) < SIGMAS * float(weight.std()) / math.sqrt(rows)


@pytest.mark.parametrize("items", [0, 3])
def test_sampled_images_have_the_exact_probabilities(items: int) -> None:
    model = GenerativeMatchingNetwork(small_mlp(height=1, width=2))
    make_louder(model.decoder)
    memory = Memory.of(bits(items, 1, 2)) if items else None
    exact = exact_log_p_x(model, every_image(1, 2), memory).exp()
    torch.testing.assert_close(exact.sum(), torch.tensor(1.0))
    drawn = model.sample(memory, 20_000)
    counts = torch.bincount(image_number(drawn.images), minlength=4)
    assert chi_square_p_value(counts, exact) > LEVEL
    assert drawn.addresses.tolist() == [0] * 20_000


def test_bad_input() -> None:
    model = GenerativeMatchingNetwork(small_mlp())
    x, memory = episode(model.config, 2, 3)
    with pytest.raises(
        InputError, match=r"memory items have the shape \[5, 5\], but the model works on \[4, 4\]"
    ):
        model(x, Memory.of(bits(2, 5, 5)))
    with pytest.raises(InputError, match="targets have the shape"):
        model(bits(2, 5, 5), memory)
    with pytest.raises(InputError, match="2 targets are not sequences of 3 images"):
        model.bound(x, PrecedingImages(3))
    with pytest.raises(InputError, match="A sequence needs at least one image, not 0"):
        PrecedingImages(0)
    with pytest.raises(InputError, match="Only a generative matching network"):
        VAE(small_mlp()).bound(x, PrecedingImages(2))
    with pytest.raises(InputError, match="targets must lie in"):
        model.bound(*sequences(2 * torch.ones(1, 2, 4, 4)))
    with pytest.raises(InputError, match="K >= 1"):
        model.bound(*sequences(x[None]), 0)
    with pytest.raises(InputError, match="Unknown estimator 'vimc'"):
        model(*sequences(x[None]), estimator="vimc")
    with pytest.raises(InputError, match="no addresses"):
        model.terms(x, memory, sampling="all")
    with pytest.raises(InputError, match="use learned_items=0"):
        GenerativeMatchingNetwork(small_mlp(learned_items=3))
    with pytest.raises(InputError, match="hops and prior_hops must be at least 1, not 0 and 1"):
        GenerativeMatchingNetwork(small_mlp(), hops=0)


# --- the layers of its public code -------------------------------------------------------------------------

PUBLISHED = ModelConfig(
    model="gmn", style="published", height=28, width=28, hidden=(7,), latent=4, matching=6,
    similarity="inner-product",
)  # fmt: skip


def normed(layer: torch.nn.Module, v: torch.Tensor) -> torch.Tensor:
    """g W/‖W‖ v + b, written out."""
    return layer.gain * (layer.weight @ v) / layer.weight.square().sum().sqrt() + layer.bias


def rectified(p: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return y.clamp(min=0) + p * y.clamp(max=0)


def published_match(
    controller: Controller, f: Query, psi: list[torch.Tensor], query: torch.Tensor
) -> torch.Tensor:
    """[r, h] for one query, as the public code has it."""
    match, slope = controller.key
    keys = [controller.pseudo_key, *(rectified(slope.weight, match(item)) for item in psi)]
    psi, h, cell = [controller.pseudo_input, *psi], controller.start, controller.cell
    for _ in range(controller.hops):
        strength = normed(f.strength, h).clamp(1e-10, 10.0)
        e = normed(f.query, torch.cat((query, h)))
        a = torch.stack([strength[0] * (g @ e) for g in keys]).softmax(0)
        r = sum(weight * item for weight, item in zip(a, psi, strict=True))
        reset, keep = torch.sigmoid(cell.gates(torch.cat((r, h, h)))).chunk(2)
        new = rectified(cell.prelu.weight, normed(cell.candidate, torch.cat((r, h, reset * h))))
        h = keep * h + (1 - keep) * new
    return torch.cat((r, h))


def assert_gaussian(given: DiagonalGaussian, statistics: torch.Tensor) -> None:
    wanted = DiagonalGaussian.of_statistics(statistics)
    torch.testing.assert_close(given.mean, wanted.mean, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(given.log_std, wanted.log_std, rtol=1e-10, atol=1e-10)


def test_weights_start_as_in_the_public_code() -> None:
    """Normal, cut at two deviations, which leaves 0.88 of the deviation; slopes and pseudo-inputs uniform."""
    model = GenerativeMatchingNetwork(PRESETS["gmn-published"].model).requires_grad_(False)
    gates = model.shared_controller.cell.gates.weight
    assert gates.shape == (400, 288 + 400)
    assert float(gates.std()) == pytest.approx(0.88 * math.sqrt(1 / 688), rel=0.01)
    assert float(gates.abs().max()) <= 2 * math.sqrt(1 / 688)
    head = model.recognition_head.weight
    assert float(head.std()) == pytest.approx(0.88 * math.sqrt(6 / (776 + 50)), rel=0.01)
    assert 0.018 < float(model.shared_controller.cell.prelu.weight.abs().max()) <= 0.02
    assert float(model.shared_controller.pseudo_key.abs().max()) <= 1 / 288
    assert float(model.prior_query.query.gain) == 1.0


def test_matching_is_that_of_the_public_code() -> None:
    model = GenerativeMatchingNetwork(PUBLISHED, hops=2).requires_grad_(False)
    make_louder(model)
    for f in (model.prior_query, model.recognition_query, model.likelihood_query):
        f.strength.bias.data.fill_(0.7)  # else it is at its floor, and nothing is matched
    x, items = bits(2, 28, 28), bits(3, 28, 28)
    condition, z = model.condition(Memory.of(items)), torch.randn(2, 1, 4)
    own, psi = model.features(x), [model.features(item[None])[0] for item in items]
    q = model.posterior(x, condition)
    maps = model.decode(z, condition)
    for b in range(2):
        read = published_match(model.shared_controller, model.recognition_query, psi, own[b])
        wanted = model.recognition_head(torch.cat((own[b], read)))
        assert_gaussian(q.map(lambda each, b=b: each[b]), wanted)
        read = published_match(model.shared_controller, model.likelihood_query, psi, z[b, 0])
        torch.testing.assert_close(maps[b], model.decoder(torch.cat((z[b, 0], read))[None]))
    read = published_match(model.prior_controller, model.prior_query, psi, torch.zeros(0))
    hidden, slope, last = model.prior_head
    wanted = last(rectified(slope.weight, normed(hidden, read)))
    assert_gaussian(model.prior(condition).map(lambda each: each[0]), wanted)


def test_sections_have_the_sizes_of_the_public_code() -> None:
    model = GenerativeMatchingNetwork(PUBLISHED)
    assert (model.shared_controller.hops, model.prior_controller.hops) == (1, 1)
    h, shapes = bits(1, 28, 28), []
    for layer in model.features:
        h = layer(h)
        shapes.append(tuple(h.shape[1:]))
    assert shapes == [(1, 28, 28), (16, 13, 13), (32, 6, 6), (32, 3, 3), (288,)]
    h, shapes = torch.randn(1, 4 + 288 + 7), []
    for layer in model.decoder:
        h = layer(h)
        shapes.append(tuple(h.shape[1:]))
    assert shapes == [(288,), (32, 3, 3), (32, 6, 6), (16, 13, 13), (16, 28, 28), (1, 28, 28)]


@pytest.mark.parametrize("down", [True, False])
def test_a_section_is_a_layer_a_residual_block_and_a_shortcut(down: bool) -> None:
    section, h = Section(2, 3, kernel=3, block=2, down=down), torch.randn(1, 2, 9, 9)
    y = section.layer(h)
    y = rectified(section.first.weight[:, None, None], y)
    kernel = section.block.gain * section.block.weight / section.block.weight.norm()
    wide = torch.nn.functional.pad(y, (0, 1, 0, 1))  # an even kernel is padded at its end
    y = rectified(section.last.weight[:, None, None], y + torch.nn.functional.conv2d(wide, kernel))
    mixed = torch.einsum("oi,bihw->bohw", section.shortcut.weight[:, :, 0, 0], h)
    mixed = section.shortcut.gain * mixed / section.shortcut.weight.norm()
    beside = section(h) - y
    if down:
        torch.testing.assert_close(beside[0, :, 1, 2], mixed[0, :, 2:5, 4:7].mean((1, 2)))
    else:
        assert beside.shape == (1, 3, 19, 19)
        torch.testing.assert_close(beside[0, :, 9, 9], mixed[0, :, 4, 4])  # the centre stays the centre
        # Output pixel 2 lies at (2 + ½) · 9/19 − ½ of the input, between its pixels 0 and 1.
        place = 2.5 * 9 / 19 - 0.5
        wanted = (1 - place) * mixed[0, :, 4, 0] + place * mixed[0, :, 4, 1]
        torch.testing.assert_close(beside[0, :, 9, 2], wanted)


def test_only_gmn_has_published_layers() -> None:
    with pytest.raises(InputError, match="that of the model 'gmn' with images of 28x28 pixels"):
        ModelConfig(style="published")
