"""p(x|m,z) as a part: exact sums, causality, draws, and everything else of the library with each of them."""

import itertools
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tests.helpers.oracles import (
    LEVEL,
    SIGMAS,
    bits,
    chi_square_p_value,
    distributions,
    episode,
    exact_log_marginal,
    expected_gradient,
    flat_gradient,
    reference_decoder,
    reference_log_prob,
    reference_logits,
    small_convolutional,
    small_mlp,
    tuples,
)
from vma import InputError, Memory, ModelConfig, estimate
from vma.baselines import VAE, GenerativeMatchingNetwork, SoftAttention
from vma.bounds import log_mean_exp, multi_sample_bound
from vma.build import build_vma
from vma.likelihoods import Bernoulli, Categorical, Likelihood, ReadingOrder, build_likelihood
from vma.likelihoods.reading_order import COOL, uniforms_of
from vma.likelihoods.wavefront import Wavefront
from vma.memory import PrecedingImages
from vma.reads import Reads

KINDS: dict[str, dict[str, object]] = {
    "bernoulli": {},
    "reading-order": {"likelihood": "reading-order", "context_maps": 3, "neighbourhood": (5, 3)},
    "one layer": {"likelihood": "reading-order", "context_maps": 4, "neighbourhood": (3,)},
    "grey": {"likelihood": "categorical", "levels": 3},
    "colour": {"likelihood": "categorical", "levels": 2, "channels": 3},
}
every_kind = pytest.mark.parametrize("kind", KINDS)
in_order = pytest.mark.parametrize("kind", ["reading-order", "one layer"])


def loud(likelihood: Likelihood) -> Likelihood:
    """With weights large enough that nothing is nearly independent of anything."""
    with torch.no_grad():
        for parameter in likelihood.parameters():
            parameter.add_(0.6 * torch.randn(parameter.shape))
    return likelihood


def a_likelihood(kind: str) -> Likelihood:
    return loud(build_likelihood(small_mlp(**KINDS[kind])))


def all_images(likelihood: Likelihood, height: int, width: int) -> Tensor:
    """Every image there is, of so few pixels."""
    levels = likelihood.levels if isinstance(likelihood, Categorical) else 2
    shape = (height, width) if likelihood.channels == 1 else (likelihood.channels, height, width)
    values = [value / (levels - 1) for value in range(levels)]
    numbers = height * width * likelihood.channels
    return torch.tensor(list(itertools.product(values, repeat=numbers))).view(-1, *shape)


def log_probs(likelihood: Likelihood, x: Tensor, features: Tensor) -> Tensor:
    """log p(x|m,z) of every image with every row of features, as [images, features]."""
    rows = torch.arange(len(x)).repeat_interleave(len(features))
    repeated = features.repeat(len(x), 1, 1, 1)
    return likelihood.log_prob(likelihood.targets(x), rows, repeated).unflatten(0, (len(x), -1))


@every_kind
@pytest.mark.parametrize("size", [(1, 4), (2, 2), (3, 1)])
def test_all_images_together_have_probability_one(kind: str, size: tuple[int, int]) -> None:
    likelihood = a_likelihood(kind)
    features = 2 * torch.randn(5, likelihood.output.maps, *size)
    found = log_probs(likelihood, all_images(likelihood, *size), features)
    torch.testing.assert_close(found.logsumexp(0), torch.zeros(5), rtol=0, atol=1e-11)
    assert float(found.detach().std()) > 0.1


def test_twelve_pixels_in_order_have_probability_one() -> None:
    likelihood = a_likelihood("reading-order")
    found = log_probs(likelihood, all_images(likelihood, 3, 4), torch.randn(2, 3, 3, 4))
    torch.testing.assert_close(found.logsumexp(0), torch.zeros(2), rtol=0, atol=1e-11)


@in_order
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_no_pixel_sees_itself_or_a_later_one(kind: str, dtype: torch.dtype) -> None:
    """Change pixel i: all logits up to i stay bit for bit, and some after it do not."""
    likelihood = a_likelihood(kind).to(dtype)
    assert isinstance(likelihood, ReadingOrder)
    x, h = bits(1, 7, 9).to(dtype), torch.randn(1, 7, 9, likelihood.output.maps, dtype=dtype)
    before = likelihood.logits(h, likelihood.targets(x)[1]).flatten()
    for i in range(63):
        other = x.clone().flatten()
        other[i] = 1 - other[i]
        after = likelihood.logits(h, likelihood.targets(other.view_as(x))[1]).flatten()
        assert torch.equal(before[: i + 1], after[: i + 1])
        assert i == 62 or not torch.equal(before[i + 1 :], after[i + 1 :])


@in_order
def test_logits_are_those_of_images_with_the_rest_erased(kind: str) -> None:
    likelihood = a_likelihood(kind)
    assert isinstance(likelihood, ReadingOrder)
    x, features = bits(1, 6, 8), torch.randn(3, likelihood.output.maps, 6, 8)
    c = likelihood.targets(x)[1]
    found = likelihood.logits(features.permute(0, 2, 3, 1), c.expand(3, -1, -1, -1))
    torch.testing.assert_close(found, reference_logits(likelihood, x[0], features), rtol=1e-11, atol=1e-11)


@in_order
def test_the_blind_know_nothing_of_their_pixels(kind: str) -> None:
    likelihood = a_likelihood(kind)
    assert isinstance(likelihood, ReadingOrder)
    blind = torch.tensor([True, False, True])
    _, c = likelihood.targets(bits(3, 5, 5), blind)
    assert [bool(each.any()) for each in c] == [False, True, False]


@every_kind
def test_draws_have_the_exact_probabilities(kind: str) -> None:
    likelihood = a_likelihood(kind)
    images = all_images(likelihood, 2, 2)
    features = torch.randn(1, likelihood.output.maps, 2, 2)
    expected = log_probs(likelihood, images, features)[:, 0].detach().exp()
    uniforms = torch.rand(40_000, *images.shape[1:], generator=torch.Generator().manual_seed(1))
    drawn = likelihood.draw(features.expand(len(uniforms), -1, -1, -1), uniforms)
    number = (drawn.images.unsqueeze(1) == images).flatten(2).all(2)
    assert bool((number.sum(1) == 1).all())
    assert chi_square_p_value(number.sum(0), expected) > LEVEL
    errors = (drawn.images - drawn.means).mean(0) / (drawn.images - drawn.means).std(0) * len(uniforms) ** 0.5
    assert float(errors.abs().max()) < SIGMAS


@in_order
@pytest.mark.parametrize("size", [(6, 9), (9, 6), (1, 5), (5, 1)])
def test_wavefronts_draw_what_pixel_after_pixel_does(kind: str, size: tuple[int, int]) -> None:
    likelihood = a_likelihood(kind)
    assert isinstance(likelihood, ReadingOrder)
    features, uniforms = torch.randn(3, likelihood.output.maps, *size), torch.rand(3, *size)
    drawn = likelihood.draw(features, uniforms, 0.7)
    for row, (h, u) in enumerate(zip(features, uniforms, strict=True)):
        x, p = torch.zeros(size), torch.zeros(size)
        for i, j in itertools.product(*map(range, size)):
            p[i, j] = (reference_logits(likelihood, x, h[None])[0, i, j].detach() / 0.7).sigmoid()
            x[i, j] = u[i, j] < p[i, j]
        assert torch.equal(drawn.images[row], x)
        torch.testing.assert_close(drawn.means[row], p, rtol=1e-10, atol=1e-11)
    assert torch.equal(drawn.shown, drawn.images)


def test_wavefronts_are_few() -> None:
    assert len(Wavefront.of((7, 5, 5), 26, 26).steps) == 26 + 4 * 25
    assert len(Wavefront.of((3,), 26, 26).steps) == 26 + 2 * 25


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("reading-order", "one layer")])
def test_the_typical_drawing_of_independent_pixels_is_the_median_of_each(kind: str) -> None:
    likelihood = a_likelihood(kind)
    features = torch.randn(4, likelihood.output.maps, 5, 6)
    drawn = likelihood.typical(features)
    if not isinstance(likelihood, Categorical):
        assert torch.equal(drawn.images, (drawn.means > 0.5).to(drawn.means))
        return
    below = likelihood.log_probs(features).exp().cumsum(-1)
    level = (drawn.images * (likelihood.levels - 1)).round().long().view(below.shape[:-1])
    reached = below.gather(-1, level[..., None])[..., 0]
    before = below.gather(-1, (level - 1).clamp(min=0)[..., None])[..., 0]
    assert bool((reached >= 0.5).all())
    assert bool(((before < 0.5) | (level == 0)).all())
    assert len(level.unique()) > 1


def test_a_cold_drawing_is_the_typical_one_whatever_the_uniforms() -> None:
    likelihood = a_likelihood("reading-order")
    features = torch.randn(4, 3, 5, 6)
    cold = likelihood.draw(features, torch.rand(4, 5, 6), 0.0)
    assert torch.equal(cold.images, likelihood.typical(features).images)


def test_the_typical_drawing_differs_least_from_others_at_the_same_numbers() -> None:
    likelihood = a_likelihood("reading-order")
    features = torch.randn(5, 3, 5, 6)
    uniforms = uniforms_of((5, 6))
    tries = [likelihood.draw(features, u.expand(5, 5, 6), COOL) for u in uniforms]
    images = torch.stack([each.images for each in tries])
    found = likelihood.typical(features)
    torch.testing.assert_close(found.means, torch.stack([each.means for each in tries]).mean(0))
    for row, image in enumerate(found.images):
        away = (images[:, None, row] - images[None, :, row]).abs().sum((1, 2, 3))
        assert torch.equal(image, images[int(away.argmin()), row])
    assert len(images.flatten(2).sum(2).unique()) > 1


def test_a_stroke_that_may_begin_anywhere_begins_somewhere() -> None:
    """Ink with probability 0.2 at every pixel: at its median each would be empty."""
    likelihood = ReadingOrder(3, (3,), 0.2)
    with torch.no_grad():
        likelihood.last.weight.zero_()
    features = torch.randn(3, 3, 12, 12)
    assert not likelihood.draw(features, torch.full((3, 12, 12), 0.5)).images.any()
    share = likelihood.typical(features).images.mean((1, 2))
    assert bool(((share > 0.05) & (share < 0.3)).all())


@pytest.mark.parametrize("kind", ["bernoulli", "reading-order", "grey"])
def test_drawing_works_under_autocast(kind: str) -> None:
    model = build_vma(small_convolutional(style="modern", **KINDS[kind])).float()
    memory = Memory.of(bits(3, 17, 22).float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        drawn = model.sample(memory, 4)
    assert drawn.images.shape == (4, 17, 22)
    assert bool(drawn.probabilities.isfinite().all())


def test_generative_matching_networks_take_sequences_in_colour() -> None:
    model = GenerativeMatchingNetwork(small_mlp(**KINDS["colour"]))
    assert model.bound(bits(2 * 4, 3, 4, 4), PrecedingImages(4), samples=2).shape == (2 * 4,)
    assert model.bound(bits(2, 3, 4, 4), samples=2).shape == (2,)


@pytest.mark.parametrize("share", [-0.5, 2.0])
def test_a_share_of_the_blind_that_is_none_is_refused(share: float) -> None:
    model = build_vma(small_mlp(**KINDS["reading-order"]))
    x, memory = episode(model.config, 2, 3)
    with pytest.raises(InputError, match="share of the targets"):
        model(x, memory, 2, blind=share)


@every_kind
def test_a_bound_stays_below_the_exact_marginal(kind: str) -> None:
    config = small_mlp(height=2, width=3, **KINDS[kind])
    model = build_vma(config)
    loud(model.likelihood)
    x, memory = episode(config, 2, 3)
    exact = exact_log_marginal(model, x, memory, nodes=61)
    many = x.repeat_interleave(3000, 0)
    with torch.no_grad():
        for samples in (1, 8):
            bounds = multi_sample_bound(model.terms(many, memory, samples)).view(2, -1)
            error = bounds.std(1) / bounds.shape[1] ** 0.5
            assert bool((bounds.mean(1) < exact + SIGMAS * error).all())
        summed = log_mean_exp(model.exact_bound(x, memory, 20_000).unsqueeze(-1))
    torch.testing.assert_close(summed, exact, rtol=0, atol=0.1)


@every_kind
def test_vimco_is_unbiased(kind: str) -> None:
    config = small_mlp(height=2, width=2, **KINDS[kind])
    model = build_vma(config)
    x, memory = episode(config, 1, 3)
    chosen, p_a, q_a = distributions(model, x, memory)
    noise = torch.randn(1, 2, 2)

    def terms(a: tuple[int, ...]) -> object:
        reads = Reads(torch.tensor([a]), torch.full((1, 2), -torch.log(torch.tensor(2.0)).item()))
        return model.terms_at(x, chosen, p_a, q_a, reads, noise)

    parameters = list(model.parameters())
    found = expected_gradient(tuples(q_a.log_probs[0], 2), lambda a: estimate(terms(a)).surrogate, parameters)
    exact = sum(p * multi_sample_bound(terms(a))[0] for a, p in tuples(q_a.log_probs[0], 2))
    torch.testing.assert_close(found, flat_gradient(exact, parameters), rtol=1e-8, atol=1e-10)
    inside = [p for name, p in model.named_parameters() if name.startswith("likelihood.")]
    assert not inside or float(flat_gradient(exact, inside).norm()) > 1e-3


@every_kind
@pytest.mark.parametrize("kind_of_model", [build_vma, VAE, SoftAttention, GenerativeMatchingNetwork])
@pytest.mark.parametrize("latent_gradient", ["pathwise", "dreg"])
def test_every_model_learns_with_it(kind: str, kind_of_model: type, latent_gradient: str) -> None:
    config = small_convolutional(style="modern", **KINDS[kind])
    model = kind_of_model(config)
    x, memory = episode(config, 8, 4)
    found = model(x, memory, 3, latent_gradient=latent_gradient, blind=0.5)
    found.loss.backward()
    names = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert not [name for name in names if "likelihood" in name or "decoder" in name]
    drawn = model.sample(memory, 5)
    assert drawn.images.shape == drawn.probabilities.shape == (5, *config.image_shape)


@every_kind
@pytest.mark.parametrize("sampling", ["all", "stratified", "without-replacement", "straight-through"])
def test_every_sampling_reads_it(kind: str, sampling: str) -> None:
    config = small_mlp(**KINDS[kind])
    model = build_vma(config)
    x, memory = episode(config, 2, 4)
    terms = model.terms(x, memory, 2, sampling=sampling)
    assert bool(terms.log_p_x.isfinite().all())


@every_kind
def test_adaptive_reads_and_chunks_give_the_terms_of_the_reference(kind: str) -> None:
    config = small_mlp(**KINDS[kind])
    model = build_vma(config)
    x, memory = episode(config, 2, 4)
    assert memory is not None
    with torch.no_grad():
        found = model.terms(x, memory, 40, sampling="adaptive", chunk=7)
        many = log_mean_exp(torch.stack([model.exact_bound(x, memory, 500) for _ in range(4)], -1))
    torch.testing.assert_close(multi_sample_bound(found), many, rtol=0, atol=0.5)


@every_kind
def test_a_learned_memory_works_with_it(kind: str) -> None:
    config = small_mlp(learned_items=3, **KINDS[kind])
    model = build_vma(config)
    model(bits(2, *config.image_shape), None, 3).loss.backward()
    assert model.learned_memory is not None
    assert float(model.learned_memory.items.grad.abs().max()) > 0


def test_log_probabilities_are_those_of_the_reference() -> None:
    for kind in KINDS:
        model = build_vma(small_mlp(**KINDS[kind]))
        z, m = torch.randn(3, 2), bits(3, *model.config.image_shape)
        features = reference_decoder(model, m, z)
        x = bits(2, *model.config.image_shape)
        found = log_probs(model.likelihood, x, features)
        wanted = torch.stack([reference_log_prob(model, each, features) for each in x])
        torch.testing.assert_close(found, wanted, rtol=1e-11, atol=1e-11)


def test_a_pixel_between_two_levels_counts_as_the_nearer_one() -> None:
    likelihood = Categorical(4, 1, 0.3)
    features, x = torch.randn(1, 4, 2, 2), torch.tensor([[[0.0, 1.0], [0.34, 0.6]]])
    rounded = torch.tensor([[[0.0, 1.0], [1 / 3, 2 / 3]]])
    assert torch.equal(log_probs(likelihood, x, features), log_probs(likelihood, rounded, features))


def test_pixels_start_at_the_expected_share_of_ink() -> None:
    for likelihood in (Bernoulli(0.2), ReadingOrder(4, (3,), 0.2), Categorical(4, 1, 0.2)):
        bias = torch.tensor(likelihood.output.bias)
        if isinstance(likelihood, ReadingOrder):
            assert float(likelihood.last.bias.detach().sigmoid()) == pytest.approx(0.2)
            assert not bias.any()
        elif isinstance(likelihood, Bernoulli):
            assert float(bias.sigmoid()) == pytest.approx(0.2)
        else:
            assert bias.softmax(0).tolist() == pytest.approx([0.8, *[0.2 / 3] * 3])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"likelihood": "gaussian"}, ["gaussian", "bernoulli", "reading-order", "categorical"]),
        ({"channels": 3}, ["channels", "categorical"]),
        ({"channels": 2, "likelihood": "categorical"}, ["channels", "3"]),
        ({"levels": 1, "likelihood": "categorical"}, ["levels", "2"]),
        ({"neighbourhood": (4,)}, ["neighbourhood", "odd"]),
        ({"neighbourhood": ()}, ["neighbourhood"]),
        ({"context_maps": 0}, ["context_maps"]),
    ],
)
def test_what_cannot_be_built_is_refused(changes: dict[str, object], words: list[str]) -> None:
    with pytest.raises(InputError) as error:
        replace(ModelConfig(), **changes)  # type: ignore[arg-type]
    assert all(word in str(error.value) for word in words)
    assert "\n" not in str(error.value)


def test_grey_targets_are_refused_where_neighbours_would_see_them() -> None:
    model = build_vma(small_mlp(**KINDS["reading-order"]))
    x, memory = episode(model.config, 2, 3)
    for bad in (model, VAE(model.config)):
        with pytest.raises(InputError, match=r"targets must be black and white.*threshold"):
            bad.terms(x * 0.5, memory)
    model.terms(x, Memory.of(torch.rand(3, 4, 4)))  # the memory may be grey


def test_images_of_another_number_of_channels_are_refused_by_their_shape() -> None:
    model = build_vma(small_mlp(**KINDS["colour"]))
    with pytest.raises(InputError, match=r"\[4, 4\].*\[3, 4, 4\]"):
        model.terms(bits(2, 4, 4), Memory.of(bits(3, 3, 4, 4)))
    with pytest.raises(InputError, match="memory items"):
        model.terms(bits(2, 3, 4, 4), Memory.of(bits(3, 4, 4)))
    with pytest.raises(InputError, match=r"in colour, \[number, 3, height, width\]"):
        Memory.of(bits(2, 2, 4, 4))
