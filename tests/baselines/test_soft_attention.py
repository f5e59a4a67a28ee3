"""Soft attention against the conditional model on one item, quadrature over z, and a read at a time."""

import math
from dataclasses import replace
from types import SimpleNamespace

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
    reference_decoder,
    small_convolutional,
    small_mlp,
)
from tests.test_fast_path import Counting
from vma import InputError, Memory, ModelConfig
from vma.baselines import SoftAttention
from vma.similarity import NORM_FLOOR

CONFIGS = {
    "mlp": small_mlp(),
    "mlp, m in the first layer": small_mlp(item_layers="first"),
    "mlp learned": small_mlp(learned_items=4),
    "convolutional": small_convolutional(),
    "modern": small_convolutional(style="modern", similarity="cosine"),
    "convolutional learned": small_convolutional(learned_items=4),
}
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
both_reads = pytest.mark.parametrize("reads", ["features", "pixels"])


def conditional_logits(model: SoftAttention, z: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    """Logits of VMA's p(x|m,z) with this model's weights, by concatenations."""
    return reference_decoder(SimpleNamespace(networks=model.decoder, config=model.config), m, z)  # type: ignore[arg-type]


@both_reads
@every_config
def test_with_one_item_it_is_the_conditional_model(config: ModelConfig, reads: str) -> None:
    model = SoftAttention(replace(config, reads=reads))
    if model.learned_memory is not None:
        model.learned_memory.items = torch.nn.Parameter(model.learned_memory.items[:1])
    memory = None if config.learned_items else Memory.of(bits(1, *config.image_shape))
    z = torch.randn(2, 3, config.latent)
    assert torch.equal(model.attention(z, memory).log_probs, torch.zeros(2, 3, 1))
    m = model.memory(memory).items.expand(6, *config.item_shape)
    wanted = conditional_logits(model, z.flatten(0, 1), m).unflatten(0, (2, 3))
    given = model.decode(z, model.condition(memory))
    torch.testing.assert_close(given, wanted, rtol=1e-11, atol=1e-11)


@both_reads
@every_config
def test_reads_are_weighted_sums(config: ModelConfig, reads: str) -> None:
    """One read at a time, with the weights written out."""
    model = SoftAttention(replace(config, reads=reads))
    _, memory = episode(config, 1, 4)
    items = model.memory(memory).items
    z = torch.randn(1, 3, config.latent)
    logits = model.decode(z, model.condition(memory))[0]
    for k in range(3):
        e, query = model.key(items), model.query(z[0, k])
        e = e / e.norm(dim=1, keepdim=True).clamp(min=NORM_FLOOR)
        query = query / query.norm() if config.similarity == "cosine" else query
        weights = torch.softmax(e @ query, 0)
        if reads == "pixels":
            m = sum(w * item for w, item in zip(weights, items, strict=True))
            wanted = conditional_logits(model, z[0, k : k + 1], m[None])
        else:
            halves = [model.decoder.item_halves(item[None]) for item in items]
            mixed = [
                sum(w * h for w, h in zip(weights, scale, strict=True)) for scale in zip(*halves, strict=True)
            ]
            wanted = model.decoder.decode(z[0, k : k + 1], tuple(mixed))
        torch.testing.assert_close(logits[k : k + 1], wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("config", [small_mlp(), small_convolutional()], ids=["mlp", "convolutional"])
def test_what_is_averaged_matters_only_where_features_are_not_linear(config: ModelConfig) -> None:
    model = SoftAttention(replace(config, reads="features"))
    other = SoftAttention(replace(config, reads="pixels"))
    other.load_state_dict(model.state_dict())
    x, memory = episode(config, 2, 4)
    noise = torch.randn(2, 3, config.latent)
    features, pixels = (m.terms_at(x, m.condition(memory), noise) for m in (model, other))
    torch.testing.assert_close(features.log_q_z, pixels.log_q_z)
    difference = (features.log_p_x - pixels.log_p_x).detach().abs()
    assert float(difference.max()) < 1e-10 if config.family == "mlp" else float(difference.min()) > 1e-4


@every_config
def test_weights_are_a_distribution_that_depends_on_z(config: ModelConfig) -> None:
    model = SoftAttention(config)
    _, memory = episode(config, 1, 4)
    weights = model.attention(torch.randn(5, config.latent), memory).log_probs.detach().exp()
    torch.testing.assert_close(weights.sum(-1), torch.ones(5))
    assert float(weights.std(0).max()) > 1e-3


@both_reads
def test_order_does_not_matter_and_masked_items_do_not_count(reads: str) -> None:
    model = SoftAttention(replace(small_convolutional(), reads=reads))
    x, memory = episode(model.config, 2, 5)
    assert memory is not None
    noise = torch.randn(2, 3, model.config.latent)

    def log_p_x(chosen: Memory) -> torch.Tensor:
        return model.terms_at(x, model.condition(chosen), noise).log_p_x

    torch.testing.assert_close(
        log_p_x(memory.keep(torch.randperm(5))), log_p_x(memory), rtol=1e-12, atol=1e-11
    )
    mask = torch.tensor([True, False, True, True, False])
    masked = Memory.of(memory.items, mask=mask)
    torch.testing.assert_close(log_p_x(masked), log_p_x(memory.keep(mask)), rtol=1e-12, atol=1e-11)
    weights = model.attention(noise, masked).log_probs.exp()
    assert float(weights[..., ~mask].detach().abs().max()) == 0


@both_reads
@every_config
def test_every_parameter_gets_a_gradient(config: ModelConfig, reads: str) -> None:
    model = SoftAttention(replace(config, reads=reads))
    x, memory = episode(config, 4, 4)
    model(x, memory, 2).loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert float(parameter.grad.abs().max()) > 0, name


@pytest.mark.parametrize(("reads", "rows"), [("features", 6), ("pixels", 12)])
def test_keys_and_values_are_computed_once_per_memory(reads: str, rows: int) -> None:
    model = SoftAttention(replace(small_convolutional(), reads=reads))
    x, memory = episode(model.config, 3, 6)
    model.key.pyramid = keys = Counting(model.key.pyramid)
    model.encoder.pyramid = targets = Counting(model.encoder.pyramid)
    model.decoder.item_pyramid = items = Counting(model.decoder.item_pyramid)
    model.terms(x, memory, 4)
    assert (keys.rows, targets.rows, items.rows) == (6, 3, rows)


@both_reads
def test_elbo_below_multi_sample_below_exact(reads: str) -> None:
    model = SoftAttention(replace(small_mlp(), reads=reads))
    make_louder(model.decoder)
    x, memory = episode(model.config, 1, 3)
    exact, rows = float(exact_log_p_x(model, x, memory)), 4000
    many = x.expand(rows, -1, -1)
    per_k = [model.bound(many, memory, k) for k in (1, 8)]
    means = [float(b.mean()) for b in per_k]
    assert means[0] < means[1] < exact + SIGMAS * float(per_k[1].std()) / math.sqrt(rows)
    weight = (per_k[1] - exact).exp()  # E[exp L] = p(x|M)
    assert abs(float(weight.mean()) - 1) < SIGMAS * float(weight.std()) / math.sqrt(rows)


def test_sampled_images_have_the_exact_probabilities() -> None:
    model = SoftAttention(small_mlp(height=1, width=2))
    make_louder(model.decoder)
    memory = Memory.of(bits(3, 1, 2))
    exact = exact_log_p_x(model, every_image(1, 2), memory).exp()
    torch.testing.assert_close(exact.sum(), torch.tensor(1.0))
    drawn = model.sample(memory, 20_000)
    counts = torch.bincount(image_number(drawn.images), minlength=4)
    assert chi_square_p_value(counts, exact) > LEVEL


def test_the_gradient_reaches_items_through_the_weights() -> None:
    """A learned memory moves by its keys as well as by its values: both parts of Σ_a w_a m_a."""
    model = SoftAttention(replace(small_mlp(learned_items=4), reads="pixels"))
    z = torch.randn(1, 3, 2)
    condition = model.condition()
    value = model.decode(z, condition).sum()
    parts = [flat_gradient(value, [t]) for t in (condition.keys, condition.values[0])]
    assert all(float(part.abs().max()) > 0 for part in parts)


def test_bad_input() -> None:
    model = SoftAttention(small_mlp())
    x, memory = episode(model.config, 2, 3)
    with pytest.raises(InputError, match="give it a memory"):
        model(x)
    with pytest.raises(
        InputError, match=r"memory items have the shape \[5, 5\], but the model works on \[4, 4\]"
    ):
        model(x, Memory.of(bits(2, 5, 5)))
    with pytest.raises(InputError, match="learned memory of its own"):
        SoftAttention(small_mlp(learned_items=3))(x, memory)
    with pytest.raises(InputError, match="Unknown kind of reads 'pixel': choose one of features, pixels"):
        SoftAttention(replace(small_mlp(), reads="pixel"))
    with pytest.raises(InputError, match="no addresses"):
        model.terms(x, memory, sampling="all")
    with pytest.raises(InputError, match="targets have the shape"):
        model(bits(2, 5, 5), memory)
