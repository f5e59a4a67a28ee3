"""The K-sample bound for large K: the same numbers in pieces, no work done twice, and bounds that are bounds."""

import math
import subprocess
import sys

import pytest
import torch

from tests.helpers.oracles import (
    LEVEL,
    SIGMAS,
    chi_square_p_value,
    distributions,
    episode,
    exact_log_marginal,
    small_convolutional,
    small_mlp,
)
from vma import AddressDistribution, InputError, Memory, decomposition, multi_sample_bound
from vma.build import build_model, build_vma
from vma.evaluation import bounds, likelihood, measures
from vma.reads import all_addresses, gather, independent, stratified

KINDS = ("vma", "vae", "soft-attention", "gmn")


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_of_any_size_give_the_same_terms(kind: str) -> None:
    model = build_model(small_convolutional(model=kind))
    x, memory = episode(model.config, 3, 5)
    whole = model.terms(x, memory, 6, generator=torch.Generator().manual_seed(1))
    for chunk in (1, 7, 1000):
        source = torch.Generator().manual_seed(1)
        pieces = model.terms(x, memory, 6, chunk=chunk, generator=source)
        torch.testing.assert_close(pieces.log_w, whole.log_w, rtol=0, atol=1e-10)


def test_targets_in_groups_give_bounds_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_vma(small_mlp())
    x, memory = episode(model.config, 7, 5)
    source = torch.Generator().manual_seed(1)
    pairs = [multi_sample_bound(model.terms(part, memory, 20, generator=source)) for part in x.split(2)]
    monkeypatch.setattr(likelihood, "READS", 40)
    found = bounds(model, x, memory, 20, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(found, torch.cat(pairs), rtol=0, atol=1e-10)


def test_each_item_and_each_pair_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_vma(small_convolutional())
    x, memory = episode(model.config, 3, 5)
    rows: dict[str, int] = {"items": 0, "encode": 0, "decode": 0, "key": 0}

    def counting(name: str, target: object, method: str) -> None:
        original = getattr(target, method)

        def wrapped(first: torch.Tensor, *rest: object) -> object:
            rows[name] += len(first)
            return original(first, *rest)

        monkeypatch.setattr(target, method, wrapped)

    for name in ("items", "encode", "decode"):
        counting(name, model.networks, name)
    counting("key", model.addressing.key, "forward")
    source = torch.Generator().manual_seed(3)
    bounds(model, x, memory, 200, generator=source)
    found = dict(rows)
    chosen, _, q_a = distributions(model, x, memory)
    drawn = gather(independent(q_a, 200, chosen, torch.Generator().manual_seed(3)))
    assert found == {"items": len(drawn.items), "encode": drawn.pairs, "decode": 600, "key": 5}


def test_measures_equal_the_exact_ones() -> None:
    model = build_vma(small_mlp())
    x, memory = episode(model.config, 4, 5)
    chosen, p_a, q_a = distributions(model, x, memory)
    noise = torch.randn(4, 5, model.config.latent)
    exact = decomposition(model.terms_at(x, chosen, p_a, q_a, all_addresses(q_a, 1, chosen), noise))
    found = measures(model, x, memory, 4000)
    assert torch.allclose(torch.tensor(found.kl_a), exact.kl_a, rtol=0, atol=1e-12)
    kl_z = torch.tensor(found.kl_z)
    assert bool(((kl_z - exact.kl_z).abs() < 0.05 * exact.kl_z + 0.01).all())
    log_p = exact_log_marginal(model, x, memory)
    nll = torch.tensor(found.nll)
    assert bool(((nll + log_p).abs() < 0.05).all())
    assert torch.allclose(torch.tensor(found.entropy_q_a), q_a.entropy(), rtol=0, atol=1e-12)


# --- the tighter bound -------------------------------------------------------------------------------------


def skewed(targets: int = 6, items: int = 9) -> AddressDistribution:
    return AddressDistribution((2.5 * torch.randn(targets, items)).log_softmax(-1))


@pytest.mark.parametrize("samples", [1, 2, 7, 40, 1000])
def test_strata_stand_for_all_of_q(samples: int) -> None:
    q_a, memory = skewed(), Memory.of(torch.zeros(9, 1, 1))
    reads = stratified(q_a, samples, memory)
    q = q_a.log_probs.exp()
    per_address = torch.zeros_like(q).scatter_add(-1, reads.addresses, reads.log_mass.exp())
    fixed = ((samples - 1) * q).floor() > 0
    torch.testing.assert_close(reads.log_mass.exp().sum(-1), torch.ones(6), rtol=0, atol=1e-12)
    torch.testing.assert_close(per_address[fixed], q[fixed], rtol=0, atol=1e-12)
    assert reads.addresses.shape == (6, samples)


def test_what_is_outside_of_the_strata_is_drawn_from_q() -> None:
    log_q = torch.tensor([0.6, 0.2, 0.1, 0.06, 0.04]).log()
    q_a = AddressDistribution(log_q.expand(40_000, -1))
    reads = stratified(q_a, 6, Memory.of(torch.zeros(5, 1, 1)))
    assert bool((reads.addresses[:, :4] == torch.tensor([0, 0, 0, 1])).all())
    counts = torch.bincount(reads.addresses[:, 4:].flatten(), minlength=5)
    assert counts[:2].tolist() == [0, 0]
    assert chi_square_p_value(counts[2:], torch.tensor([0.5, 0.3, 0.2])) > LEVEL
    torch.testing.assert_close(reads.log_mass[0, 4:].exp(), torch.tensor([0.1, 0.1]))


def test_an_allocation_moves_reads_but_not_mass() -> None:
    q_a, allocation, memory = skewed(), skewed(), Memory.of(torch.zeros(9, 1, 1))
    reads = stratified(q_a, 50, memory, allocation=allocation)
    share = ((50 - 1) * allocation.log_probs.exp()).floor().long()
    q = q_a.log_probs.exp()
    per_address = torch.zeros_like(q).scatter_add(-1, reads.addresses, reads.log_mass.exp())
    torch.testing.assert_close(per_address[share > 0], q[share > 0], rtol=0, atol=1e-12)
    torch.testing.assert_close(per_address.sum(-1), torch.ones(6), rtol=0, atol=1e-12)


def test_masked_items_and_certain_posteriors_are_fine() -> None:
    log_q = torch.tensor([[0.0, -torch.inf, -torch.inf], [-torch.inf, math.log(0.5), math.log(0.5)]])
    reads = stratified(AddressDistribution(log_q), 5, Memory.of(torch.zeros(3, 1, 1)))
    assert bool((reads.addresses[0] == 0).all())
    assert set(reads.addresses[1].tolist()) == {1, 2}
    torch.testing.assert_close(reads.log_mass.exp().sum(-1), torch.ones(2))


def test_the_adaptive_estimate_is_unbiased_and_its_logarithm_a_bound() -> None:
    model = build_vma(small_mlp())
    x, memory = episode(model.config, 1, 5)
    truth = float(exact_log_marginal(model, x, memory))
    many = x.expand(10_000, -1, -1)
    found = likelihood.bounds(model, many, memory, 12, sampling="adaptive")
    ratio = (found - truth).exp()
    assert abs(float(ratio.mean()) - 1) < SIGMAS * float(ratio.std()) / math.sqrt(len(ratio))
    assert float(found.mean()) < truth + SIGMAS * float(found.std()) / math.sqrt(len(found))


def test_it_is_exact_where_z_does_not_matter_and_independent_reads_are_not() -> None:
    model = build_vma(small_mlp())
    with torch.no_grad():  # q(z|m,x) = p(z|m) = N(0, 1), z of no effect, items that differ
        for network in (model.networks.encoder[-1], model.networks.prior[-1], model.networks.decoder_z):
            network.weight.zero_()
            network.bias.zero_()
        model.networks.decoder_m.weight.mul_(12)
    x, memory = episode(model.config, 1, 8)
    truth = exact_log_marginal(model, x, memory)
    adaptive = bounds(model, x, memory, 200, sampling="adaptive")
    plain = bounds(model, x.expand(100, -1, -1), memory, 200)
    torch.testing.assert_close(adaptive, truth, rtol=0, atol=1e-9)
    assert float(plain.std()) > 0.05  # independent reads still have their luck in a


def test_adaptive_terms_decompose_like_any_others() -> None:
    model = build_vma(small_mlp())
    x, memory = episode(model.config, 2, 5)
    terms = model.terms(x, memory, 40, sampling="adaptive")
    torch.testing.assert_close(terms.log_mass.exp().sum(-1), torch.ones(2))
    _, p_a, q_a = distributions(model, x, memory)
    torch.testing.assert_close(decomposition(terms).kl_a, q_a.kl(p_a))


def test_a_model_without_addresses_is_sampled_in_the_only_way_there_is() -> None:
    model = build_model(small_convolutional(model="vae"))
    x = episode(model.config, 2, 1)[0]
    one, two = (bounds(model, x, None, 9, sampling=name, generator=torch.Generator().manual_seed(0))
                for name in ("independent", "adaptive"))  # fmt: skip
    assert one.equal(two)


def test_an_unknown_way_of_sampling_is_named() -> None:
    model = build_vma(small_mlp())
    with pytest.raises(InputError, match="adaptive"):
        bounds(model, *episode(model.config, 1, 2), 4, sampling="adaptiv")


LARGE = """
import resource, torch
from vma import Memory, ModelConfig, build_vma
from vma.evaluation import bounds
torch.set_num_threads(1)
model = build_vma(ModelConfig(maps=64))
items = (torch.rand(2560, 26, 26) < 0.1).float()
print(bounds(model, items[:2], Memory.of(items), 32).shape)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_a_memory_of_2560_items_takes_less_than_4_gb() -> None:
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True, check=True)
    kilobytes = int(done.stdout.split()[-1])
    assert "torch.Size([2])" in done.stdout
    assert kilobytes * (1 if sys.platform == "linux" else 1 / 1024) < 4e6
