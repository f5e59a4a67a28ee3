"""Novelty of a model that knows every class, and of rows whose areas and shares are known."""

import io
import math
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn.functional import one_hot

from tests.helpers.known_models import CONFIG, COST, SIZE, code, coded, trained
from tests.helpers.oracles import SIGMAS, small_mlp
from vma import VMA, AddressDistribution, BoundTerms, InputError, Memory
from vma.build import build_vma, parts_of
from vma.evaluation import Answer, NoveltyOptions, novelty
from vma.evaluation.figures import draw_novelty
from vma.evaluation.novelty import (
    LEVELS,
    MEASURES,
    NoveltyResults,
    NoveltyRow,
    area,
    curve,
    flagged,
    histogram,
    summary,
)
from vma.evaluation.tables import table
from vma.fewshot.novelty import UNUSUAL, t_limit, t_tail
from vma.reads import Reads

CLASSES = 30
CODES = 2 ** (SIZE * SIZE // 2)  # of which turned images may have any


class CodeKeys(nn.Module):
    """A key that says which class an image is of, and a little about which image."""

    def forward(self, images: Tensor) -> Tensor:
        lower = images.flatten(1)[:, SIZE * SIZE // 2 :]
        return torch.cat((20 * one_hot(code(images), CODES).to(images), 2 * lower), dim=1)


class Knowing(VMA):
    """q(a|x) is nearly all on the items of x's class, and p(x|m_a) = exp(−COST) there, exp(−100) elsewhere."""

    def __init__(self) -> None:
        super().__init__(*parts_of(CONFIG))
        self.addressing.key, self.addressing.query = CodeKeys(), CodeKeys()
        self.addressing.prior_query = None

    def terms_at(
        self,
        x: Tensor,
        memory: Memory,
        p_a: AddressDistribution,
        q_a: AddressDistribution,
        reads: Reads,
        noise: Tensor,
        **options: Any,
    ) -> BoundTerms:
        a = reads.addresses
        right = code(x).unsqueeze(1) == code(memory.items)[a]
        zero = torch.zeros(a.shape, dtype=x.dtype)
        log_p_x = torch.where(right, zero - COST, zero - 100)
        return BoundTerms(p_a.log_prob(a), q_a.log_prob(a), zero, zero, log_p_x, reads.log_mass)


@pytest.fixture(scope="module")
def found() -> Answer[NoveltyResults]:
    options = NoveltyOptions(episodes=3, classes=6, absent=5, shots=4, targets=3, samples=8)
    evaluation = novelty(trained(Knowing(), coded(CLASSES, 12)), options)
    return Answer("novelty", evaluation.about, evaluation.results())


def test_a_model_that_knows_every_class_flags_all_that_are_absent(found: Answer[NoveltyResults]) -> None:
    results = found.results
    for name in ("joined", "angle", "odds", "surprise", "nll"):
        assert results.areas[name].value == 1.0
    assert results.found.value == 1.0
    assert results.missed.value == 0.0
    assert results.false_alarms.value == 0.0
    assert results.number_of_targets == 3 * (6 + 5) * 3
    known, new = sum(results.histogram.known), sum(results.histogram.new)
    assert (known, new) == (3 * 6 * 3, 3 * 5 * 3)


def test_the_table_and_the_figure_show_the_answer(found: Answer[NoveltyResults]) -> None:
    shown = table(found)
    assert shown.row_count == 9
    assert "1.000" in list(shown.columns[1].cells)
    assert "100.0%" in list(shown.columns[3].cells)
    picture = Image.open(io.BytesIO(draw_novelty(found)))
    assert picture.size == (1536, 576)


def test_an_episode_depends_on_its_number_alone() -> None:
    torch.manual_seed(0)
    options = NoveltyOptions(episodes=2, classes=2, absent=2, shots=2, targets=2, samples=2)
    model, dataset = build_vma(CONFIG), coded(9, 6)
    one, other = (novelty(trained(model, dataset), options) for _ in range(2))
    assert [one.part(0), one.part(1)] == [other.part(1), other.part(0)][::-1]
    assert one.part(0) != one.part(1)


# Rows whose answer is known


def row(known: np.ndarray, new: np.ndarray, freedom: float = 9.0) -> NoveltyRow:
    """An episode of which all measures are the given ones, known and new in turns."""
    values, is_new = np.concatenate((known, new)), np.repeat((False, True), (len(known), len(new)))
    order = np.random.default_rng(len(values)).permutation(len(values))
    measure = values[order].tolist()
    return NoveltyRow(
        **{name: measure for name in MEASURES},
        new=is_new[order].tolist(),
        p_value=[t_tail(t, freedom) for t in measure],
        limit=t_limit(UNUSUAL, freedom),
    )


def test_shares_and_areas_of_known_distributions() -> None:
    """Known targets follow t, and new ones t + 3: 5 % false alarms, and P(t + 3 > limit) are found."""
    draw = np.random.default_rng(0)
    rows = [row(draw.standard_t(9, 100), 3 + draw.standard_t(9, 100)) for _ in range(20)]
    results = summary(rows)
    found = t_tail(results.limit - 3, 9.0)
    for share, expected in ((results.false_alarms, UNUSUAL), (results.found, found)):
        error = math.sqrt(expected * (1 - expected) / (20 * 100))
        assert share.value == pytest.approx(expected, abs=SIGMAS * error)
        assert share.error == pytest.approx(error, rel=0.6)
        assert share.low < share.value < share.high
    assert results.missed.value == pytest.approx(1 - results.found.value)
    for promised in results.promised:
        level = promised.level
        error = math.sqrt(level * (1 - level) / (20 * 100))
        assert promised.value == pytest.approx(level, abs=SIGMAS * error)
    draws = draw.standard_t(9, (2, 100_000))
    expected = float((draws[0] < draws[1] + 3).mean())
    area_of_joined = results.areas["joined"]
    assert area_of_joined.value == pytest.approx(
        expected, abs=SIGMAS * (area_of_joined.error + 0.5 / math.sqrt(100_000))
    )


def test_the_area_lies_under_the_curve() -> None:
    draw = np.random.default_rng(1)
    each = row(draw.normal(size=100), 1 + draw.normal(size=50))  # 100 known ones: a step for each level
    heights = curve(each, "joined")
    assert (np.diff(heights) >= 0).all()
    assert heights[-1] == 1
    assert float(np.trapezoid(heights, LEVELS)) == pytest.approx(area(each, "joined"), abs=0.5 / 100)
    known, new = each.split("joined")
    limit = np.sort(known)[-10]
    assert heights[10] == pytest.approx((new > limit).mean(), abs=2 / 50)
    perfect = curve(row(np.zeros(4), np.ones(4)), "joined")
    assert (perfect == 1).all()


def test_values_beyond_the_histogram_are_counted_at_its_ends() -> None:
    counts = histogram([row(np.array([-99.0, 0.1]), np.array([1e9, 5.2, 5.3]))])
    assert (sum(counts.known), sum(counts.new)) == (2, 3)
    assert (counts.known[0], counts.new[-1]) == (1, 1)


def test_an_error_of_a_share_counts_memories_not_targets() -> None:
    alike = [row(np.full(50, value), np.full(50, 9.0)) for value in (0.0, 0.0, 0.0, 9.0)]
    share = flagged(alike, UNUSUAL, new=False)
    assert share.value == 0.25
    assert share.error == pytest.approx(0.25)


MISTAKES = {
    "one item of a class": ({"shots": 1}, "shots must be 2 or more, not 1"),
    "no absent class": ({"absent": 0}, "absent must be 1 or more, not 0"),
    "a single pair": ({"classes": 1, "shots": 2}, "Novelty needs 4 or more items in memory"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_named(mistake: str) -> None:
    options, message = MISTAKES[mistake]
    with pytest.raises(InputError, match=message):
        novelty(trained(build_vma(CONFIG), coded(6, 6)), NoveltyOptions(**options))


def test_a_model_without_a_raw_memory_is_refused() -> None:
    learned = build_vma(small_mlp(height=SIZE, width=SIZE, learned_items=3))
    with pytest.raises(InputError, match="Only a model with a raw memory"):
        novelty(trained(learned, coded(6, 6)), NoveltyOptions())
