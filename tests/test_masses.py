"""p(a) without going through memory: whole numbers that add up, and draws that follow them."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.oracles import LEVEL, chi_square_p_value
from vma import AddressDistribution
from vma.masses import SCALE, MassPrior, masses_of, units


def random_masses(items: int, norm: float = 6.6, seed: int = 0) -> np.ndarray:
    scores = norm * np.random.default_rng(seed).uniform(-1, 1, items)
    return masses_of(scores, norm)


def test_units_are_the_exact_sum() -> None:
    masses = random_masses(5000, norm=30.0)
    assert units(masses) == sum(Fraction(float(mass)) * 2**SCALE for mass in masses)


@given(st.lists(st.integers(0, 99), max_size=60), st.integers(0, 2**32 - 1))
def test_inserts_and_deletes_in_any_order_leave_the_sum_of_what_is_there(which: list[int], seed: int) -> None:
    masses, total, present = random_masses(100, seed=seed), 0, set()
    for item in which:
        sign = -1 if item in present else 1
        total += sign * units(masses[[item]])
        present ^= {item}
    assert total == units(masses[sorted(present)])


def test_shards_add_up() -> None:
    masses = random_masses(10_000)
    shards = [units(part) for part in np.array_split(masses, 7)]
    assert sum(shards) == units(masses)


def test_probabilities_are_those_of_a_softmax_and_add_up_to_one() -> None:
    scores = np.random.default_rng(1).uniform(-6.6, 6.6, 3000)
    prior = MassPrior([masses_of(scores[:1000], 6.6), masses_of(scores[1000:], 6.6)])
    expected = torch.from_numpy(scores).log_softmax(0)
    a = torch.arange(3000)
    torch.testing.assert_close(prior.log_prob(a), expected, rtol=0, atol=1e-12)
    whole = [Fraction(float(mass)) * 2**SCALE for mass in prior.mass(a.numpy())]
    assert sum(whole) == prior.total
    torch.testing.assert_close(prior.entropy(), AddressDistribution(expected).entropy())


def test_what_is_forgotten_has_no_mass_and_the_rest_adds_up() -> None:
    masses = random_masses(2500)
    prior = MassPrior([masses[:2100], masses[2100:]]).without(torch.tensor([0, 5, 2100, 2499, 5]))
    assert prior.total == units(np.delete(masses, [0, 5, 2100, 2499]))
    assert len(prior) == 2496
    assert prior.log_prob(torch.tensor([5])) == -math.inf
    again = MassPrior([masses], forgotten=np.array([0, 5, 2100, 2499]))
    assert again.total == prior.total
    np.testing.assert_allclose(prior.blocks.sum(), again.blocks.sum(), rtol=1e-12)


@pytest.mark.parametrize("forgotten", [[], [3, 1500, 1501, 2999]])
def test_draws_follow_p(forgotten: list[int]) -> None:
    masses = random_masses(3000, norm=2.0)
    prior = MassPrior([masses[:1100], masses[1100:]]).without(torch.tensor(forgotten, dtype=torch.int64))
    drawn = prior.sample(20_000)
    counts = torch.bincount(drawn, minlength=3000)
    assert counts[forgotten].sum() == 0
    assert chi_square_p_value(counts, prior.log_prob(torch.arange(3000)).exp()) > LEVEL
