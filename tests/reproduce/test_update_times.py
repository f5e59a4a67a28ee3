"""Updates are timed on episodes of the asked size, with reads that repeat as a trained model's do."""

import math
from itertools import product

import pytest
import torch

from vma import InputError
from vma.addressing import AddressDistribution
from vma.reproduce.sharp_addresses import expected_pairs, trained_pairs
from vma.reproduce.update_times import crossing, glyph_sampler


@pytest.mark.parametrize(("items", "targets"), [(1, 1), (8, 4), (50, 32), (32, 32), (1500, 32)])
def test_an_episode_has_the_size_that_was_asked_for(items: int, targets: int) -> None:
    episode = glyph_sampler(items, targets).episode(0)
    assert (len(episode.memory), len(episode.targets)) == (items, targets)


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="at least one target"):
        glyph_sampler(0, 4)
    with pytest.raises(InputError, match="ask for fewer"):
        glyph_sampler(32, 32 * 8)


def test_the_number_of_different_addresses_is_the_expected_one() -> None:
    q_a = AddressDistribution.of_scores(torch.tensor([[0.0, 1.0, 2.5], [3.0, 0.0, -torch.inf]]).double())
    expected = [
        sum(math.prod(float(p[a]) for a in reads) * len(set(reads)) for reads in product(range(3), repeat=3))
        for p in q_a.log_probs.exp()
    ]
    assert expected_pairs(q_a, 3) == pytest.approx(sum(expected) / 2)


@pytest.mark.parametrize("items", [1, 2, 4, 8, 31, 32, 33, 2304, 10**6])
def test_more_reads_differ_more_and_no_more_than_there_are(items: int) -> None:
    pairs = [trained_pairs(items, samples) for samples in (2, 4, 31, 32, 33, 1000, 10**6)]
    assert pairs == sorted(pairs)
    assert pairs[0] <= 2
    assert 1 <= pairs[0] <= pairs[-1] <= items


def test_a_crossing_lies_where_the_curves_meet() -> None:
    sizes = [10, 100, 1000]
    assert crossing(sizes, [1.0, 1.0, 1.0], [n / 50 for n in sizes]) == pytest.approx(50)
    assert crossing(sizes, [1.0, 1.0, 1.0], [0.1, 0.2, 0.3]) is None
    assert crossing(sizes, [1.0, 1.0, 1.0], [2.0, 3.0, 4.0]) == 10
