"""Reads of a memory that is searched: valid bounds for any candidates, by enumeration of 2000 addresses."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from tests.helpers.oracles import (
    LEVEL,
    SIGMAS,
    bits,
    chi_square_p_value,
    expected_gradient,
    small_mlp,
    tuples,
)
from tests.helpers.searched import Searched, SearchTable
from vma import Memory, build_vma, decomposition, elbo, multi_sample_bound
from vma.errors import InputError
from vma.estimators import estimate, find_estimator
from vma.fewshot.sharpening import Candidates, fitted
from vma.proposals import SEARCHED, Proposal, SearchedMemory, draw_places
from vma.reads import Reads

ITEMS = 2000
RECALLS = (1.0, 0.5, 0.0)
EPSILONS = (0.05, 0.5)
SHARPNESSES = (0.5, 1.0, 3.0)


@pytest.mark.parametrize("recall", RECALLS)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sharpness", SHARPNESSES)
def test_weights_are_unbiased_for_any_candidates(recall: float, epsilon: float, sharpness: float) -> None:
    table = SearchTable(ITEMS, recall, epsilon, sharpness=sharpness)
    log_r, log_w = table.log_r(), table.log_w()
    torch.testing.assert_close(log_r.logsumexp(1), torch.zeros(1), rtol=0, atol=1e-9)
    torch.testing.assert_close((log_r + log_w).logsumexp(1), table.log_p_x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("recall", RECALLS)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("sharpness", SHARPNESSES)
def test_bounds_of_one_and_two_reads_are_below_log_p_by_enumeration(
    recall: float, epsilon: float, sharpness: float
) -> None:
    table = SearchTable(ITEMS, recall, epsilon, sharpness=sharpness)
    r, log_w = table.log_r()[0].exp(), table.log_w()[0]
    one = (r * log_w).sum()
    pairs = torch.logaddexp(log_w[:, None], log_w) - math.log(2)
    two = (r[:, None] * r * pairs).sum()
    assert one < two < table.log_p_x[0]
    gap = table.log_p_x[0] - one
    posterior = table.log_posterior()[0]
    torch.testing.assert_close(gap, (r * (r.log() - posterior)).sum(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("recall", [1.0, 0.5])
def test_without_epsilon_the_gap_is_at_least_the_mass_that_was_missed(recall: float) -> None:
    table = SearchTable(ITEMS, recall, epsilon=0.0)
    found = table.proposal.addresses
    assert (table.proposal.log_prob(table.everywhere())[0].isfinite().sum()) == found.shape[1]
    best = (table.log_p_a + table.log_fit)[found].logsumexp(1)
    missed = -table.log_posterior()[0, found[0]].logsumexp(0)
    torch.testing.assert_close(table.log_p_x - best, missed[None], rtol=1e-9, atol=1e-9)
    r, log_w = table.log_r()[0, found[0]].exp(), table.log_w()[0, found[0]]
    assert r.sum() == pytest.approx(1, abs=1e-9)
    assert (r * log_w).sum() < best < table.log_p_x - 0.01


@pytest.mark.parametrize("recall", RECALLS)
def test_the_divergence_and_the_entropy_are_exact_from_the_candidates_alone(recall: float) -> None:
    for epsilon, sharpness in product((0.0, *EPSILONS), SHARPNESSES):
        table = SearchTable(ITEMS, recall, epsilon, sharpness=sharpness)
        log_r = table.log_r()
        r, finite = log_r.exp(), log_r.masked_fill(log_r == -torch.inf, 0.0)
        torch.testing.assert_close(table.proposal.kl(table.prior), (r * (finite - table.log_p_a)).sum(1))
        torch.testing.assert_close(table.proposal.entropy(), -(r * finite).sum(1))
        terms = table.terms("independent", 4)
        torch.testing.assert_close(decomposition(terms).kl_a, table.proposal.kl(table.prior))


@pytest.mark.parametrize("sampling", SEARCHED)
@pytest.mark.parametrize("recall", RECALLS)
def test_every_way_of_reading_is_unbiased(sampling: str, recall: float) -> None:
    table = SearchTable(200, recall, epsilon=0.25, targets=400, sharpness=1.4)
    ratios = (multi_sample_bound(table.terms(sampling, 16)) - table.log_p_x).exp()
    error = float(ratios.std()) / math.sqrt(len(ratios))
    assert abs(float(ratios.mean()) - 1) < SIGMAS * error
    assert error < 0.2


def test_a_quarter_of_the_reads_is_drawn_outside_of_the_best() -> None:
    table = SearchTable(ITEMS, 1.0, epsilon=0.05)
    reads = table.reads("stratified", 64)
    places, counts = reads.addresses[0].unique(return_counts=True)
    exact = (table.proposal.log_prob(places[None]).exp()[0] * 48).floor()
    assert torch.equal(counts[exact > 0].double(), exact[exact > 0])
    assert 16 <= 64 - int(exact.sum()) < 64
    torch.testing.assert_close(reads.log_mass.logsumexp(1), torch.zeros(1), rtol=0, atol=1e-9)


def test_draws_follow_r() -> None:
    table = SearchTable(300, 0.5, epsilon=0.3)
    drawn = table.proposal.sample(20_000)[0]
    counts = torch.bincount(drawn, minlength=300)
    assert chi_square_p_value(counts, table.log_r()[0].exp()) > LEVEL


def test_what_is_hardly_outside_is_drawn_by_leaving_the_candidates_out() -> None:
    table = SearchTable(50, 1.0, epsilon=0.5, candidates=49)
    (outside,) = set(range(50)) - set(table.proposal.addresses[0].tolist())
    assert table.proposal.elsewhere(0, 3, None).tolist() == [outside] * 3


def test_where_nothing_is_found_reads_are_those_of_p() -> None:
    table = SearchTable(100, 0.0, epsilon=0.1, candidates=0)
    torch.testing.assert_close(table.log_r()[0], table.log_p_a, rtol=0, atol=1e-9)
    assert float(table.proposal.kl(table.prior)) == pytest.approx(0, abs=1e-12)
    assert table.proposal.sample(5).shape == (1, 5)


def test_a_fitted_sharpness_is_as_near_to_the_posterior_as_any() -> None:
    table = SearchTable(ITEMS, 1.0, 0.05, candidates=400)
    here, scores = table.proposal.addresses[0], table.proposal.scores[0]
    assert fitted([Candidates(scores, 2.5 * scores)]) == pytest.approx(2.5, abs=1e-3)
    assert fitted([Candidates(scores, 99 * scores)]) == pytest.approx(20)
    posterior = (table.log_p_a + table.log_fit)[here]
    best = fitted([Candidates(scores, posterior)])

    def divergence(sharpness: float) -> float:
        log_p = posterior.log_softmax(0)
        return float((log_p.exp() * (log_p - (sharpness * scores).log_softmax(0))).sum())

    assert divergence(best) < min(divergence(best - 0.05), divergence(best + 0.05))


def test_a_share_of_reads_and_a_sampling_are_checked() -> None:
    with pytest.raises(
        InputError, match=r"epsilon is a share of the reads, so it must lie in \[0, 1\], not 2.0"
    ):
        Proposal(torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, 1), SearchTable(9, 1.0, 0.1).prior, 2.0)
    with pytest.raises(InputError, match=r"sharpness multiplies S, so it must be a number above 0, not 0\.0"):
        SearchTable(9, 1.0, 0.1, sharpness=0.0)
    with pytest.raises(InputError, match="is read independent, stratified, adaptive, not all"):
        draw_places(SearchTable(9, 1.0, 0.1).proposal, 4, "all", None, lambda reads: None)
    with pytest.raises(InputError, match="known from its own p"):
        SearchTable(9, 1.0, 0.1).proposal.kl(SearchTable(9, 1.0, 0.1).prior)


# --- a model on a memory that is searched -------------------------------------------------------------------


def model_and_memory(items: int = 12, candidates: int = 4) -> tuple:
    model = build_vma(small_mlp())
    torch.nn.init.normal_(model.addressing.prior_query)
    memory = Memory.of(bits(items, 4, 4))
    return model, memory, Searched(model, memory, candidates)


@torch.no_grad()
def test_with_every_item_found_the_terms_are_those_of_the_whole_memory() -> None:
    model, memory, searched = model_and_memory(candidates=12)
    searched.share = 0.0
    assert isinstance(searched, SearchedMemory)
    x, reads = bits(3, 4, 4), Reads(torch.randint(12, (3, 5)), torch.full((3, 5), -math.log(5)))
    noise = torch.randn(3, 5, 2)
    proposal = replace(model.proposal(x, searched), sharpness=1.0)
    ours = model.terms_at(x, searched, proposal.p_a, proposal, reads, noise)
    keyed = model.keyed(memory)
    theirs = model.terms_at(x, keyed.memory, model.prior(keyed), model.posterior(x, keyed), reads, noise)
    torch.testing.assert_close(ours.log_w, theirs.log_w)
    torch.testing.assert_close(decomposition(ours).kl_a, decomposition(theirs).kl_a)
    torch.testing.assert_close(elbo(ours), elbo(theirs))


def test_a_model_samples_and_bounds_on_it() -> None:
    model, memory, searched = model_and_memory()
    x = bits(400, 4, 4)[:1].expand(200, 4, 4)
    drawn = model.sample(searched, 5)
    assert drawn.images.shape == (5, 4, 4)
    means = [model.bound(x, each, 32).double() for each in (searched, memory)]
    error = math.sqrt(sum(float(mean.var()) / 200 for mean in means))
    assert abs(float(means[0].mean() - means[1].mean())) < 0.05 + SIGMAS * error


# --- training with stale keys -------------------------------------------------------------------------------


def test_vimco_on_a_search_with_stale_keys_is_unbiased_for_the_bound_it_states() -> None:
    """Σ over all |M|² pairs of r(a₁) r(a₂) ∇ surrogate = ∇ E[L], where r has the gradient of fresh keys."""
    model, _, searched = model_and_memory(items=7, candidates=3)
    with torch.no_grad():
        for parameter in model.addressing.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))  # the keys that the search goes by are old now
    x, noise = bits(1, 4, 4), torch.randn(1, 2, 2)
    parameters = [each for each in model.parameters() if each is not model.addressing.prior_query]

    def terms_of(a: tuple[int, ...]):
        proposal = model.proposal(x, searched)
        reads = Reads(torch.tensor([a]), torch.full((1, 2), -math.log(2)))
        return model.terms_at(x, searched, proposal.p_a, proposal, reads, noise)

    log_r = model.proposal(x, searched).log_prob(torch.arange(7)[None])[0]
    assert float(log_r.detach().exp().sum()) == pytest.approx(1, abs=1e-9)
    vimco = find_estimator("vimco")
    found = expected_gradient(
        tuples(log_r.detach(), 2),
        lambda a: estimate(terms_of(a), vimco, "pathwise").surrogate.sum(),
        parameters,
    )
    expected: Tensor = torch.stack(
        [p * multi_sample_bound(terms_of(a))[0] for a, p in tuples(log_r, 2)]
    ).sum()
    gradients = torch.autograd.grad(expected, parameters, allow_unused=True)
    flat = torch.cat([
        (torch.zeros_like(p) if g is None else g).flatten() for g, p in zip(gradients, parameters, strict=True)
    ])  # fmt: skip
    torch.testing.assert_close(found, flat, rtol=1e-8, atol=1e-10)
    assert float(flat.abs().max()) > 1e-3
