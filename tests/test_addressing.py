"""p(a) and q(a|x): normalisation, sampling, divergences, permutations and masks."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.oracles import (
    LEVEL,
    SIGMAS,
    bits,
    chi_square_p_value,
    episode,
    exact_log_marginal,
    small_mlp,
)
from vma import AddressDistribution, InputError, Memory, addressing, multi_sample_bound
from vma.build import build_vma
from vma.parts import SIMILARITIES
from vma.reads import Reads, stratified, without_replacement

SIMILARITY = {
    "normalized-key": lambda e, q: e @ q / e.norm(dim=-1),
    "inner-product": lambda e, q: e @ q,
    "cosine": lambda e, q: e @ q / (e.norm(dim=-1) * q.norm()),
}


@pytest.mark.parametrize("name", list(SIMILARITIES))
def test_similarity_is_the_formula(name: str) -> None:
    e, queries = torch.randn(7, 5), torch.randn(3, 5)
    similarity = SIMILARITIES[name]
    wanted = torch.stack([SIMILARITY[name](e, q) for q in queries])
    torch.testing.assert_close(similarity.scores(similarity.keys(e), queries), wanted)


@pytest.mark.parametrize("name", list(SIMILARITIES))
def test_a_zero_key_or_query_gives_no_nan(name: str) -> None:
    e = torch.randn(4, 5)
    e[2] = 0.0
    e.requires_grad_()
    queries = torch.zeros(2, 5, requires_grad=True)
    similarity = SIMILARITIES[name]
    AddressDistribution.of_scores(similarity.scores(similarity.keys(e), queries)).entropy().sum().backward()
    assert bool(torch.isfinite(e.grad).all())
    assert bool(torch.isfinite(queries.grad).all())


@pytest.mark.parametrize("prior", ["learned", "flat"])
@pytest.mark.parametrize("name", list(SIMILARITIES))
def test_probabilities_sum_to_one(name: str, prior: str) -> None:
    model = build_vma(small_mlp(similarity=name, prior=prior))
    x, memory = episode(model.config, 5, 9)
    torch.testing.assert_close(model.posterior(x, memory).log_probs.exp().sum(-1), torch.ones(5))
    torch.testing.assert_close(model.prior(memory).log_probs.exp().sum(), torch.ones(()))


def test_the_learned_prior_starts_flat_and_shares_the_keys() -> None:
    model = build_vma(small_mlp())
    _, memory = episode(model.config, 1, 6)
    torch.testing.assert_close(model.prior(memory).log_probs, torch.full((6,), -math.log(6)))
    with torch.no_grad():
        model.addressing.prior_query.copy_(torch.randn(6))
    keys = model.addressing.key(memory.items)
    wanted = (keys @ model.addressing.prior_query / keys.norm(dim=-1).clamp(min=1e-4)).log_softmax(0)
    torch.testing.assert_close(model.prior(memory).log_probs, wanted)


def test_tied_networks_embed_alike() -> None:
    model = build_vma(small_mlp(tied=True))
    assert model.addressing.query is None
    x, _ = episode(model.config, 3, 3)
    assert model.posterior(x, Memory.of(x)).log_probs.argmax(-1).shape == (3,)
    untied = build_vma(small_mlp())
    names = {n for n, _ in untied.named_parameters()} - {n for n, _ in model.named_parameters()}
    assert all(name.startswith("addressing.query.") for name in names)
    assert names


def test_divergence_entropy_and_perplexity() -> None:
    q, p = (AddressDistribution.of_scores(torch.randn(4, 6)) for _ in range(2))
    reference = [torch.distributions.Categorical(logits=d.log_probs) for d in (q, p)]
    torch.testing.assert_close(q.kl(p), torch.distributions.kl_divergence(*reference))
    torch.testing.assert_close(q.entropy(), reference[0].entropy())
    flat = AddressDistribution.of_scores(torch.zeros(1, 6))
    torch.testing.assert_close(flat.perplexity(), torch.full((1,), 6.0))


@pytest.mark.parametrize("spread", [0.0, 1.0, 6.0])
def test_sampled_counts_fit_the_probabilities(spread: float) -> None:
    distribution = AddressDistribution.of_scores(spread * torch.randn(20))
    counts = torch.bincount(distribution.sample(200_000), minlength=20)
    assert chi_square_p_value(counts, distribution.log_probs.exp()) > LEVEL


def test_sampled_counts_fit_with_a_hundred_thousand_items_in_float32() -> None:
    scores = torch.randn(100_000, dtype=torch.float32) * 2
    distribution = AddressDistribution.of_scores(scores)
    counts = torch.bincount(distribution.sample(2_000_000), minlength=len(scores))
    probabilities = distribution.log_probs.double().exp()
    assert chi_square_p_value(counts, probabilities / probabilities.sum()) > LEVEL


def test_the_chi_square_test_can_fail() -> None:
    distribution = AddressDistribution.of_scores(torch.randn(100_000) * 2)
    wrong = AddressDistribution.of_scores(distribution.log_probs + 0.1 * torch.randn(100_000))
    counts = torch.bincount(wrong.sample(2_000_000), minlength=100_000)
    assert chi_square_p_value(counts, distribution.log_probs.exp()) < LEVEL


def drawn_by_blocks(distribution: AddressDistribution, rows: int, samples: int) -> torch.Tensor:
    """The counts of `samples` reads for each of `rows` equal targets, so few that they are drawn by blocks."""
    size = distribution.log_probs.shape[-1]
    assert size >= 2 * addressing.BLOCK * samples
    drawn = AddressDistribution(distribution.log_probs.expand(rows, -1)).sample(samples)
    assert drawn.shape == (rows, samples)
    return torch.bincount(drawn.flatten(), minlength=size)


def test_counts_fit_where_few_reads_are_drawn_from_a_large_memory() -> None:
    scores = torch.randn(20_500, dtype=torch.float32) * 3  # the last block is not full
    distribution = AddressDistribution.of_scores(scores)
    counts = sum(drawn_by_blocks(distribution, 1000, 10) for _ in range(40))
    probabilities = distribution.log_probs.double().exp()
    assert chi_square_p_value(counts, probabilities / probabilities.sum()) > LEVEL


def test_reads_by_blocks_fit_are_independent_and_pass_over_what_is_masked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(addressing, "BLOCK", 4)
    mask = torch.rand(19) < 0.6
    mask[4:8] = False  # a whole block
    distribution = AddressDistribution.of_scores(torch.randn(19) * 2, mask)
    counts = drawn_by_blocks(distribution, 100_000, 2)
    assert not counts[~mask].any()
    assert chi_square_p_value(counts[mask], distribution.log_probs.exp()[mask]) > LEVEL
    first, second = AddressDistribution(distribution.log_probs.expand(100_000, -1)).sample(2).unbind(1)
    pairs = torch.bincount(first * 19 + second, minlength=19 * 19).view(19, 19)[mask][:, mask]
    p = distribution.log_probs.exp()[mask]
    assert chi_square_p_value(pairs.flatten(), (p[:, None] * p).flatten()) > LEVEL


def test_what_is_left_of_a_sharp_posterior_is_drawn_as_well_in_a_large_memory() -> None:
    """Of 4 reads 3 are for the one likely address; the mass of the others, e⁻¹²⁰, is no number of float32."""
    scores = torch.full((500, 10_000), -120.0, dtype=torch.float32)
    scores[:, 3], scores[:, -1] = 0.0, -torch.inf
    mask = scores[0] > -torch.inf
    memory = Memory(torch.zeros(10_000, 1, 1), mask=mask)
    assert scores.shape[1] >= 2 * addressing.BLOCK * 4
    drawn = stratified(AddressDistribution.of_scores(scores), 4, memory).addresses
    assert bool((drawn[:, :3] == 3).all())
    others = drawn[:, 3]
    assert bool((mask[others] & (others != 3)).all())
    tenths = torch.bincount(others // 1000, minlength=10)
    assert chi_square_p_value(tenths, torch.full((10,), 0.1)) > LEVEL


def test_each_row_is_drawn_from_its_own_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addressing, "BLOCK", 4)
    wanted = torch.tensor([[3], [9], [17]])
    scores = torch.full((3, 18), -torch.inf).scatter(1, wanted, 0.0)
    assert torch.equal(AddressDistribution(scores).sample(2), wanted.expand(3, 2))
    whole = AddressDistribution(torch.full((2, 18), torch.nan)).sample(2)
    assert bool((whole < 18).all())


def test_each_target_is_sampled_from_its_own_posterior() -> None:
    distribution = AddressDistribution.of_scores(torch.randn(3, 8))
    drawn = distribution.sample(50_000)
    for row, probabilities in zip(drawn, distribution.log_probs.exp(), strict=True):
        assert chi_square_p_value(torch.bincount(row, minlength=8), probabilities) > LEVEL


def test_sets_drawn_without_replacement_have_their_probability() -> None:
    log_q = torch.randn(4).log_softmax(0)
    rows = 60_000
    memory = Memory.of(torch.zeros(4, 1, 1))
    reads = without_replacement(AddressDistribution(log_q.expand(rows, -1)), 2, memory)
    assert bool((reads.addresses[:, 0] != reads.addresses[:, 1]).all())
    q = log_q.exp()
    first, second = reads.addresses.unbind(1)
    counts = torch.bincount(first * 4 + second, minlength=16).view(4, 4)
    wanted = q[:, None] * q[None] / (1 - q[:, None]) * (1 - torch.eye(4))
    off = ~torch.eye(4, dtype=torch.bool)
    assert chi_square_p_value(counts[off], wanted[off]) > LEVEL


def test_masked_items_are_never_drawn_even_at_the_last_ulp() -> None:
    mask = torch.tensor([True, False, True, False])
    distribution = AddressDistribution.of_scores(torch.tensor([[0.0, 9.0, 1.0, 9.0]]), mask)
    drawn = distribution.sample(100_000)
    assert set(drawn.unique().tolist()) == {0, 2}
    share = float((drawn == 2).double().mean())
    wanted = math.e / (1 + math.e)
    assert abs(share - wanted) < SIGMAS * math.sqrt(wanted * (1 - wanted) / 100_000)


def test_a_distribution_that_is_not_a_number_still_gives_addresses() -> None:
    drawn = AddressDistribution(torch.full((2, 5), torch.nan)).sample(3)
    assert bool((drawn < 5).all())


@given(st.integers(0, 2**31), st.integers(1, 7), st.booleans())
def test_permuting_the_memory_permutes_q_and_keeps_the_bound(seed: int, items: int, masked: bool) -> None:
    torch.manual_seed(seed)
    model = build_vma(small_mlp())
    x, raw = episode(model.config, 3, items)
    mask = torch.rand(items) < 0.7
    mask[0] = True
    memory = Memory(raw.items, torch.arange(items), mask if masked else None)
    order = torch.randperm(items)
    shuffled = memory.keep(order)
    torch.testing.assert_close(shuffled.labels, order)
    before, after = model.posterior(x, memory), model.posterior(x, shuffled)
    torch.testing.assert_close(after.log_probs, before.log_probs[:, order])
    torch.testing.assert_close(model.prior(shuffled).log_probs, model.prior(memory).log_probs[order])

    def bound(m: Memory, addresses: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        reads = Reads(addresses, torch.full((3, 2), -math.log(2)))
        return multi_sample_bound(model.terms_at(x, m, model.prior(m), model.posterior(x, m), reads, noise))

    addresses, noise = before.sample(2), torch.randn(3, 2, 2)
    places = order.argsort()[addresses]
    torch.testing.assert_close(bound(shuffled, places, noise), bound(memory, addresses, noise))


@given(st.integers(0, 2**31), st.integers(2, 6))
def test_masked_items_have_no_mass_and_no_influence(seed: int, items: int) -> None:
    torch.manual_seed(seed)
    model = build_vma(small_mlp())
    x, raw = episode(model.config, 2, items)
    mask = torch.rand(items) < 0.5
    mask[seed % items] = True
    masked, only = Memory(raw.items, None, mask), Memory(raw.items[mask])
    q, p = model.posterior(x, masked), model.prior(masked)
    assert bool((q.log_probs[:, ~mask] == -torch.inf).all())
    assert bool((p.log_probs[~mask] == -torch.inf).all())
    torch.testing.assert_close(q.log_probs[:, mask], model.posterior(x, only).log_probs)
    torch.testing.assert_close(q.kl(p), model.posterior(x, only).kl(model.prior(only)))
    for sampling in ("independent", "all", "straight-through"):
        terms = model.terms(x, masked, 2, sampling=sampling)
        assert bool(torch.isfinite(multi_sample_bound(terms)).all())
    model(x, masked, 2, estimator="gumbel").loss.backward()
    assert all(bool(torch.isfinite(p.grad).all()) for p in model.parameters() if p.grad is not None)


def test_memory_is_swapped_and_resized_without_retraining() -> None:
    model = build_vma(small_mlp())
    x, memory = episode(model.config, 2, 3)
    for items in (1, 3, 50):
        other = Memory.of(bits(items, 4, 4))
        assert model.posterior(x, other).log_probs.shape == (2, items)
    joined = memory.join(Memory.of(bits(2, 4, 4)))
    assert len(joined) == 5
    torch.testing.assert_close(joined.read(torch.tensor([0, 1, 2])), memory.items)
    assert len(joined.keep(torch.tensor([4, 0]))) == 2
    masked = Memory(memory.items, None, torch.tensor([True, False, True])).join(memory)
    assert masked.addresses().tolist() == [0, 2, 3, 4, 5]


def test_samples_come_from_the_prior_over_addresses() -> None:
    model = build_vma(small_mlp())
    _, memory = episode(model.config, 1, 4)
    with torch.no_grad():
        model.addressing.prior_query.copy_(torch.randn(6))
    drawn = model.sample(memory, 50_000)
    counts = torch.bincount(drawn.addresses, minlength=4)
    assert chi_square_p_value(counts, model.prior(memory).log_probs.detach().exp()) > LEVEL
    ink, expected = drawn.images.mean(), drawn.probabilities.mean()
    assert abs(float(ink - expected)) < SIGMAS * 0.5 / math.sqrt(drawn.images.numel())
    assert set(drawn.images.unique().tolist()) <= {0.0, 1.0}
    chosen = model.sample(memory, addresses=torch.tensor([3, 3, 0]))
    assert chosen.addresses.tolist() == [3, 3, 0]
    assert chosen.images.shape == (3, 4, 4)


def test_sampled_images_have_the_model_probability() -> None:
    """The share of a pixel pattern among samples is exp(log p(x|M)) of the exact marginal."""
    model = build_vma(small_mlp(height=1, width=2))
    memory = Memory.of(bits(3, 1, 2))
    patterns = torch.tensor([[[0.0, 0.0]], [[0.0, 1.0]], [[1.0, 0.0]], [[1.0, 1.0]]])
    wanted = exact_log_marginal(model, patterns, memory).exp()
    torch.testing.assert_close(wanted.sum(), torch.ones(()), rtol=0, atol=1e-6)
    drawn = model.sample(memory, 60_000).images[:, 0]
    counts = torch.bincount((2 * drawn[:, 0] + drawn[:, 1]).long(), minlength=4)
    assert chi_square_p_value(counts, wanted) > LEVEL


def test_keys_that_are_kept_are_used_where_nothing_learns_and_made_anew_where_something_does() -> None:
    model = build_vma(small_mlp())
    x, memory = episode(model.config, 2, 5)
    kept = model.remember(memory.items)
    torch.testing.assert_close(model.posterior(x, kept).log_probs, model.posterior(x, memory).log_probs)
    model(x, kept, 4).loss.backward()
    assert all(parameter.grad is not None for parameter in model.addressing.key.parameters())
    with torch.no_grad():
        assert model.keyed(kept).keys is kept.keys
        doubled = model.keyed(replace(kept, keys=2 * kept.keys)).keys
    assert torch.equal(doubled, 2 * kept.keys)
    assert model.float().keyed(kept).keys.dtype == torch.float32
    with pytest.raises(InputError, match="memory items have the shape"):
        model.keyed(replace(kept, memory=Memory(torch.zeros(5, 3, 3))))
