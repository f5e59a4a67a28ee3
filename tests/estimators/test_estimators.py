"""Each estimator's gradient against the exact gradient of its objective, by enumeration."""

import math

import pytest
import torch
from torch import Tensor

from tests.helpers.oracles import (
    SIGMAS,
    Table,
    distinct_tuples,
    distributions,
    episode,
    expected_gradient,
    flat_gradient,
    quadrature,
    small_convolutional,
    small_mlp,
    tuples,
)
from vma import (
    ESTIMATORS,
    AddressDistribution,
    BoundTerms,
    InputError,
    Memory,
    elbo,
    estimate,
    multi_sample_bound,
)
from vma.build import build_vma
from vma.estimators import Estimate
from vma.estimators.reinforce import nvil, reinforce
from vma.estimators.rws import rws
from vma.estimators.vimco import vimco, vimco_geometric
from vma.estimators.without_replacement import without_replacement
from vma.latents import DiagonalGaussian
from vma.reads import Reads, all_addresses, straight_through
from vma.subsets import log_mass_of_set

EXACT = 1e-8


@pytest.mark.parametrize("samples", [2, 3, 4])
@pytest.mark.parametrize("estimator", [vimco, vimco_geometric])
def test_vimco_has_the_gradient_of_the_expected_bound(estimator, samples: int) -> None:
    table = Table(items=4)
    wanted = flat_gradient(table.expected_bound(samples), table.parameters)
    got = expected_gradient(tuples(table.log_q, samples), table.independent(estimator), table.parameters)
    torch.testing.assert_close(got, wanted, rtol=0, atol=EXACT)


def test_vimco_is_equation_8_term_by_term() -> None:
    table, a = Table(items=5), (0, 3, 3)
    terms = table.terms(table.reads(a))
    w = terms.log_w.detach().exp()[0]
    omega = w / w.sum()
    others = torch.stack([(w.sum() - w[k]) / 2 for k in range(3)])
    omega_phi = w.mean().log() - others.log() - omega
    wanted = sum(
        omega[k] * flat_gradient(terms.log_p_a[0, k] + terms.log_p_x[0, k], table.parameters)
        + omega_phi[k] * flat_gradient(terms.log_q_a[0, k], table.parameters)
        for k in range(3)
    )
    got = flat_gradient(vimco(terms).surrogate, table.parameters)
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("samples", [2, 3])
def test_reinforce_has_the_gradient_of_the_elbo(samples: int) -> None:
    table = Table(items=4)
    wanted = flat_gradient(table.elbo(), table.parameters)
    got = expected_gradient(tuples(table.log_q, samples), table.independent(reinforce), table.parameters)
    torch.testing.assert_close(got, wanted, rtol=0, atol=EXACT)


@pytest.mark.parametrize(("samples", "spread"), [(2, 1.0), (3, 1.0), (4, 1.0), (3, 8.0)])
def test_without_replacement_has_the_gradient_of_the_elbo(samples: int, spread: float) -> None:
    table = Table(items=4, spread=spread)
    wanted = flat_gradient(table.elbo(), table.parameters)
    outcomes = distinct_tuples(table.log_q, samples)
    got = expected_gradient(
        outcomes,
        lambda a: without_replacement(table.terms(table.distinct_reads(a))).surrogate,
        table.parameters,
    )
    torch.testing.assert_close(got, wanted, rtol=0, atol=EXACT)


def test_without_replacement_weighs_each_read_by_the_mass_it_stands_for() -> None:
    table = Table(items=5)
    values = torch.randn(5)
    got = sum(
        p * (table.distinct_reads(a).log_mass[0].exp() * values[list(a)]).sum()
        for a, p in distinct_tuples(table.log_q, 3)
    )
    torch.testing.assert_close(got, (table.log_q.exp() * values).sum(), rtol=0, atol=1e-12)


def test_without_replacement_keeps_its_digits_when_q_is_sharp() -> None:
    log_q = torch.tensor([[0.0, -60.0, -61.0]]).log_softmax(-1)
    mass = log_mass_of_set(log_q[:, :2], log_q[:, 2])
    rest = math.exp(-60.0) + math.exp(-61.0)
    torch.testing.assert_close(mass[0], torch.tensor([0.0, math.log(rest)]), rtol=1e-9, atol=1e-9)


def model_oracle(config, estimator: str, samples: int) -> tuple[Tensor, Tensor]:
    """Expected surrogate gradient and exact gradient of the expected bound, for a whole model, noise fixed."""
    model = build_vma(config)
    x, memory = episode(config, 1, 3)
    noise = torch.randn(1, samples, config.latent)
    chosen, p_a, q_a = distributions(model, x, memory)
    parameters = list(model.parameters())

    def terms(a: tuple[int, ...]) -> BoundTerms:
        reads = Reads(torch.tensor([a]), torch.full((1, samples), -math.log(samples)))
        return model.terms_at(x, chosen, p_a, q_a, reads, noise)

    log_q = q_a.log_probs[0]
    objective = multi_sample_bound if ESTIMATORS[estimator].objective == "multi-sample" else elbo
    exact = torch.stack([p * objective(terms(a))[0] for a, p in tuples(log_q, samples)]).sum()
    got = expected_gradient(
        tuples(log_q, samples), lambda a: estimate(terms(a), estimator).surrogate, parameters
    )
    return got, flat_gradient(exact, parameters)


@pytest.mark.parametrize("estimator", ["vimco", "vimco-geometric", "reinforce"])
@pytest.mark.parametrize(
    "config",
    [
        small_mlp(),
        small_mlp(learned_items=3, similarity="cosine"),
        small_mlp(prior="flat", tied=True),
        small_convolutional(maps=2, similarity="inner-product"),
    ],
    ids=["mlp", "learned-cosine", "flat-tied", "convolutional"],
)
def test_a_whole_model_gets_the_exact_gradient(config, estimator: str) -> None:
    got, wanted = model_oracle(config, estimator, samples=2)
    assert wanted.abs().max() > 0.01
    torch.testing.assert_close(got, wanted, rtol=0, atol=EXACT)


def test_exact_enumerates_all_addresses() -> None:
    model = build_vma(small_mlp())
    x, memory = episode(model.config, 2, 3)
    chosen, p_a, q_a = distributions(model, x, memory)
    noise = torch.randn(2, 3, 2)
    parameters = list(model.parameters())
    got = estimate(model.terms_at(x, chosen, p_a, q_a, all_addresses(q_a, 1, chosen), noise), "exact")
    per_target = torch.zeros(())
    for b in range(2):
        for a in range(3):
            reads = Reads(torch.tensor([[a]]), torch.zeros(1, 1))
            one = model.posterior(x[b : b + 1], memory)
            terms = model.terms_at(x[b : b + 1], chosen, p_a, one, reads, noise[b, a].view(1, 1, 2))
            per_target = per_target + one.log_probs[0, a].exp() * terms.log_w[0, 0]
    torch.testing.assert_close(got.bound.mean(), per_target / 2)
    wanted = flat_gradient(per_target / 2, parameters)
    torch.testing.assert_close(flat_gradient(got.surrogate, parameters), wanted, rtol=0, atol=EXACT)


def gaussian_terms(mean: Tensor, log_std: Tensor, noise: Tensor, detach: bool) -> tuple[BoundTerms, Tensor]:
    """One address; q(z) a Gaussian of free parameters, log p(x,z) a smooth function with its own."""
    theta = torch.tensor([0.3, -0.2]).requires_grad_()
    q_z = DiagonalGaussian(mean.expand(*noise.shape[:2], 1), log_std.expand(*noise.shape[:2], 1))
    z = q_z.sample(noise)
    log_joint = -0.5 * ((z[..., 0] - theta[0]) / 1.2).square() + theta[1] * torch.sin(z[..., 0])
    zero = torch.zeros_like(log_joint)
    mass = torch.full_like(log_joint, -math.log(noise.shape[1]))
    log_q_z = (q_z.detach() if detach else q_z).log_prob(z)
    return BoundTerms(zero, zero, log_joint, log_q_z, zero, mass, z=z, hold_q_z=detach), theta


@pytest.mark.parametrize("name", ["vimco", "rws", "reinforce"])
def test_dreg_has_the_same_expected_gradient_as_the_pathwise_one(name: str) -> None:
    """Quadrature over both samples of z gives both expectations to all digits."""
    mean, log_std = torch.tensor([0.4]).requires_grad_(), torch.tensor([-0.3]).requires_grad_()
    points, log_weights = quadrature(101, 2)
    gradients = {}
    for latent_gradient in ("pathwise", "dreg"):
        terms, theta = gaussian_terms(mean, log_std, points.unsqueeze(-1), latent_gradient == "dreg")
        # The surrogate is a mean over rows: weigh each row's bound by its quadrature weight instead.
        result = estimate(terms, name, latent_gradient)
        weighted = (log_weights.exp() * result.bound).sum()
        gradients[latent_gradient] = flat_gradient(weighted, [mean, log_std, theta])
    assert gradients["pathwise"][:2].abs().min() > 1e-3
    torch.testing.assert_close(gradients["dreg"], gradients["pathwise"], rtol=0, atol=EXACT)


def test_dreg_refuses_terms_that_it_would_be_wrong_for() -> None:
    mean, log_std = torch.tensor([0.4]).requires_grad_(), torch.tensor([-0.3]).requires_grad_()
    noise = torch.randn(3, 2, 1)
    with pytest.raises(InputError, match="hold_q_z=True"):
        estimate(gaussian_terms(mean, log_std, noise, False)[0], "vimco", "dreg")
    terms, _ = gaussian_terms(mean, log_std, noise, True)
    estimate(terms, "vimco", "dreg")
    with pytest.raises(InputError, match="make new ones"):
        estimate(terms, "rws", "dreg")


def test_dreg_lowers_the_variance_of_the_encoder_gradient() -> None:
    """At the optimum of q the doubly reparameterised gradient has no variance at all."""
    mean, log_std = torch.tensor([0.3]).requires_grad_(), torch.tensor([math.log(1.2)]).requires_grad_()
    noise = torch.randn(200, 1, 2, 1)
    spread = {}
    for latent_gradient in ("pathwise", "dreg"):
        rows = []
        for row in noise:
            terms, theta = gaussian_terms(mean, log_std, row, latent_gradient == "dreg")
            terms = BoundTerms(
                terms.log_p_a, terms.log_q_a, terms.log_p_z - theta[1] * torch.sin(terms.z[..., 0]),
                terms.log_q_z, terms.log_p_x, terms.log_mass, z=terms.z,
                hold_q_z=terms.hold_q_z,
            )  # fmt: skip
            rows.append(flat_gradient(estimate(terms, "vimco", latent_gradient).surrogate, [mean, log_std]))
        spread[latent_gradient] = torch.stack(rows).std(0).max()
    assert spread["pathwise"] > 0.05
    assert spread["dreg"] < 1e-12


def posterior_divergence(table: Table) -> Tensor:
    """KL(p(a|x) ‖ q(a|x)), what the wake phase descends."""
    joint = (table.prior.log_softmax(0) + table.fit).detach()
    posterior = joint.log_softmax(0)
    return (posterior.exp() * (posterior - table.log_q)).sum()


def test_rws_trains_the_model_without_bias_and_q_with_a_bias_that_shrinks_with_k() -> None:
    table = Table(items=3)
    wanted = -flat_gradient(posterior_divergence(table), [table.query])
    bias = []
    for samples in (2, 4, 6):
        got = expected_gradient(tuples(table.log_q, samples), table.independent(rws), table.parameters)
        bound = flat_gradient(table.expected_bound(samples), [table.fit])
        torch.testing.assert_close(got[6:], bound, rtol=0, atol=EXACT)
        bias.append(float((got[3:6] - wanted).norm() / wanted.norm()))
    assert bias[0] > bias[1] > bias[2] > 1e-6
    assert bias[2] < 0.6 * bias[0]


def test_nvil_shrinks_the_gradient_of_q_alone() -> None:
    table = Table(items=4, spread=3.0)
    plain = expected_gradient(tuples(table.log_q, 3), table.independent(reinforce), table.parameters)
    got = expected_gradient(tuples(table.log_q, 3), table.independent(nvil), table.parameters)
    torch.testing.assert_close(got[8:], plain[8:], rtol=0, atol=EXACT)
    query, wanted = got[4:8], plain[4:8]
    cosine = float(torch.cosine_similarity(query, wanted, dim=0))
    assert cosine > 0.7
    assert 0.05 < float(query.norm() / wanted.norm()) < 0.95


def test_straight_through_reads_the_item_and_its_gradient_is_biased_but_aligned() -> None:
    table, rows = Table(items=4), 40_000
    q_a = AddressDistribution(table.log_q.expand(rows, -1))
    reads = straight_through(q_a, 2, Memory.of(torch.zeros(4, 1, 1)))
    assert torch.equal(reads.choice.detach().argmax(-1), reads.addresses)
    assert set(reads.choice.detach().unique().tolist()) == {0.0, 1.0}
    terms = table.terms(reads)
    bounds = multi_sample_bound(terms).detach()
    exact = float(table.expected_bound(2).detach())
    assert abs(float(bounds.mean()) - exact) < SIGMAS * float(bounds.std()) / math.sqrt(rows)
    got = flat_gradient(estimate(terms, "gumbel").surrogate, [table.query])
    wanted = flat_gradient(table.expected_bound(2), [table.query])
    assert float(torch.cosine_similarity(got, wanted, dim=0)) > 0.5
    assert float((got - wanted).norm() / wanted.norm()) > 0.02


@pytest.mark.parametrize("name", list(ESTIMATORS))
@pytest.mark.parametrize("latent_gradient", ["pathwise", "dreg"])
@pytest.mark.parametrize(
    "config", [small_mlp(learned_items=5), small_convolutional(maps=4)], ids=["learned", "raw"]
)
def test_every_parameter_gets_a_gradient(name: str, latent_gradient: str, config) -> None:
    model = build_vma(config)
    x, memory = episode(config, 6, 5)
    for _ in range(3):  # relu units that are off for one draw may be on for another
        result = model(x, memory, 4, estimator=name, latent_gradient=latent_gradient)
        assert isinstance(result, Estimate)
        result.loss.backward()
    silent = [n for n, p in model.named_parameters() if p.grad is None or not bool(p.grad.any())]
    assert silent == []
    assert all(bool(torch.isfinite(p.grad).all()) for p in model.parameters() if p.grad is not None)


def test_learned_memory_moves_where_it_is_read() -> None:
    model = build_vma(small_mlp(learned_items=5))
    x, _ = episode(model.config, 2, 5)
    chosen, p_a, q_a = distributions(model, x, None)
    reads = Reads(torch.tensor([[1, 3], [3, 3]]), torch.full((2, 2), -math.log(2)))
    p_a, q_a = (AddressDistribution(d.log_probs.detach()) for d in (p_a, q_a))  # keys move every item
    estimate(model.terms_at(x, chosen, p_a, q_a, reads, torch.randn(2, 2, 2))).loss.backward()
    moved = model.learned_memory.items.grad.abs().sum(1) > 0
    assert moved.tolist() == [False, True, False, True, False]
