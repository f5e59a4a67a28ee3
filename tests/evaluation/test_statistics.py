"""Means, shares and areas, against the formulas written out."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from tests.helpers.oracles import SIGMAS
from vma.evaluation.statistics import area_under_curve, mean_of, wilson


def test_errors_of_dependent_values_are_those_of_their_groups() -> None:
    """Over many samples of groups of unequal size, the error squared is the variance that the mean has."""
    rng, found = np.random.default_rng(1), []
    groups = np.repeat(np.arange(40), 1 + np.arange(40) % 5)
    for _ in range(2000):
        values = rng.normal(size=40)[groups] + 0.5 * rng.normal(size=len(groups))
        found.append(mean_of(values.tolist(), groups.tolist()))
    means, errors = np.array([f.value for f in found]), np.array([f.error for f in found])
    ratio = (errors**2).mean() / means.var()
    sizes = np.bincount(groups)
    assert means.var() == pytest.approx(((sizes**2).sum() + 0.25 * len(groups)) / len(groups) ** 2, rel=0.15)
    assert ratio == pytest.approx(1.0, abs=0.05 + SIGMAS * math.sqrt(2 / 2000))
    assert errors[-1] > 1.4 * mean_of(values.tolist()).error


def test_means_and_their_errors() -> None:
    assert math.isnan(mean_of([3.0]).error)
    assert mean_of([1.0, 3.0]).error == pytest.approx(1.0)
    assert math.isnan(mean_of([1.0, 3.0], ["a", "a"]).error)
    found = mean_of([1.0, 2.0, 3.0, 6.0])
    assert (found.value, found.error) == (3.0, pytest.approx(math.sqrt(14 / 3) / 2))
    assert mean_of([1.0, 1.0, 3.0, 3.0], ["a", "a", "b", "b"]).error == pytest.approx(1.0)


@pytest.mark.parametrize("trials", [1, 2, 3, 7, 30, 400, 2000])
def test_wilsons_interval_is_its_formula(trials: int) -> None:
    """(p + z²/2n ± z √(p (1 − p)/n + z²/4n²)) / (1 + z²/n), with z the exact quantile."""
    z = norm.ppf(0.975)
    for successes in {0, 1, trials // 2, trials - 1, trials}:
        share, p = wilson(successes, trials), successes / trials
        half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
        ends = [(p + z * z / (2 * trials) + end) / (1 + z * z / trials) for end in (-half, half)]
        assert [share.low, share.high] == pytest.approx(ends, abs=1e-12)
        assert 0 <= share.low <= share.value == p <= share.high <= 1
        assert share.trials == trials


def test_wilson_interval_against_published_values() -> None:
    share = wilson(8, 10)
    assert (share.low, share.high) == (pytest.approx(0.4901, abs=2e-4), pytest.approx(0.9433, abs=2e-4))
    assert wilson(0, 10).low == 0.0 < wilson(0, 10).high == pytest.approx(0.2775, abs=2e-4)
    assert wilson(10, 10).high == 1.0 > wilson(10, 10).low


def test_wilsons_interval_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = sum(
        wilson(int(k), 30).low <= 0.3 <= wilson(int(k), 30).high for k in rng.binomial(30, 0.3, 2000)
    )
    assert covered / 2000 > 0.95 - SIGMAS * math.sqrt(0.05 * 0.95 / 2000) - 0.01


def test_areas_of_a_few_values() -> None:
    assert area_under_curve([0.0, 1.0], [2.0, 3.0]) == 1.0
    assert area_under_curve([0.0, 2.0], [1.0, 2.0]) == pytest.approx((1 + 1 + 0 + 0.5) / 4)
    assert area_under_curve([1.0, 1.0], [1.0]) == 0.5


def test_an_area_is_the_share_of_pairs_in_order_and_ties_count_half() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        lower, higher = rng.integers(0, 9, 60).astype(float), rng.integers(2, 12, 35).astype(float)
        pairs = (lower[:, None] < higher) + 0.5 * (lower[:, None] == higher)
        assert area_under_curve(lower.tolist(), higher.tolist()) == pytest.approx(pairs.mean(), abs=1e-12)
