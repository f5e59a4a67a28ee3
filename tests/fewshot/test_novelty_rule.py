"""The rule of novelty on numbers whose distribution is known."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.helpers.oracles import SIGMAS
from vma.fewshot.novelty import LEAST_WEIGHT, UNUSUAL, Measures, rule_of, t_limit, t_tail, weights

NONE_NEW = np.zeros((0, 3))


@pytest.mark.parametrize("freedom", [1.5, 2.0, 3.5, 15.5, 24.5])
def test_students_t_has_its_tails_the_right_way_round(freedom: float) -> None:
    for t in (-4.0, -1.0, 0.0, 0.5, 1.7, 6.0, 50.0):
        assert t_tail(t, freedom) == pytest.approx(stats.t.sf(t, freedom), rel=1e-10)
    for share in (0.5, 0.05, 0.001):
        assert t_limit(share, freedom) == pytest.approx(stats.t.isf(share, freedom), rel=1e-8, abs=1e-10)


def test_measures_that_say_the_same_give_students_own_statistic() -> None:
    values = np.array([1.0, 1.5, 0.5, 2.0, 1.2])
    rule = rule_of(np.stack((values, 3 * values - 1, values / 7), axis=1), NONE_NEW)
    spread = values.std(ddof=1) * math.sqrt(1 + 1 / 5)
    found = rule.statistic(Measures(2.6, 3 * 2.6 - 1, 2.6 / 7))
    assert found == pytest.approx((2.6 - values.mean()) / spread)
    assert rule.freedom == 2.0


def test_the_surprise_at_the_threshold_has_the_p_value_of_the_threshold() -> None:
    draw = np.random.default_rng(0)
    rule = rule_of(draw.normal(size=(9, 3)), 2 + draw.normal(size=(9, 3)))
    for angle in (-1.0, 0.3, 4.0):
        limit = rule.largest_surprise(Measures(7.0, angle, 1.0))
        assert rule.p_value(Measures(limit, angle, 1.0)) == pytest.approx(UNUSUAL, rel=1e-6)
        above, below = (rule.p_value(Measures(limit + step, angle, 1.0)) for step in (0.01, -0.01))
        assert above < UNUSUAL < below


@pytest.mark.parametrize("count", [4, 8, 32])
@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_known_images_are_called_novel_at_most_as_often_as_promised(count: int, correlation: float) -> None:
    """An image that is exchangeable with the items is novel in at most 5 % of memories, and not in far fewer."""
    draw, trials = np.random.default_rng(count), 4000
    root = np.linalg.cholesky(correlation + (1 - correlation) * np.eye(3))
    values = draw.normal(size=(trials, count + 1, 3)) @ root.T
    found = np.array([rule_of(row[:-1], NONE_NEW).statistic(Measures(*row[-1])) for row in values])
    novel = (found > t_limit(UNUSUAL, (count - 1) / 2)).mean()
    assert 0.015 < novel < UNUSUAL + SIGMAS * math.sqrt(UNUSUAL * (1 - UNUSUAL) / trials)
    assert (found > 0).mean() == pytest.approx(0.5, abs=SIGMAS * 0.5 / math.sqrt(trials))


def test_the_measure_that_tells_new_from_known_counts_more() -> None:
    draw = np.random.default_rng(1)
    known, new = draw.normal(size=(50, 3)), draw.normal(size=(50, 3)) + np.array([4.0, -1.0, 2.0])
    first, second, third = weights(known, new)
    assert first == pytest.approx(4, abs=SIGMAS * math.sqrt((1 + 4**2 / 4) * 2 / 50))
    assert second == LEAST_WEIGHT < third < first
    assert weights(known, NONE_NEW).tolist() == [1, 1, 1]
    rule = rule_of(known, new)
    assert rule.p_value(Measures(4.0, 0.0, 0.0)) < UNUSUAL < rule.p_value(Measures(0.0, 4.0, 0.0))


def test_neither_the_order_of_items_nor_the_unit_of_a_measure_matters() -> None:
    draw = np.random.default_rng(2)
    known, new = draw.normal(size=(12, 3)), 3 + draw.normal(size=(12, 3))
    image = np.array([1.5, 0.5, 1.0])
    expected = rule_of(known, new).p_value(Measures(*image))
    order = draw.permutation(12)
    assert rule_of(known[order], new[::-1]).p_value(Measures(*image)) == pytest.approx(expected)
    scale, shift = np.array([10.0, 0.1, 3.0]), np.array([5.0, -2.0, 0.0])
    moved = rule_of(known * scale + shift, new * scale + shift)
    assert moved.p_value(Measures(*(image * scale + shift))) == pytest.approx(expected)


def test_among_copies_a_copy_is_known_and_all_else_is_novel() -> None:
    rule = rule_of(np.ones((6, 3)), np.full((6, 3), 2.0))
    assert rule.p_value(Measures(1.0, 1.0, 1.0)) == pytest.approx(0.5, abs=0.001)
    assert rule.p_value(Measures(1.1, 1.1, 1.1)) < 1e-6
