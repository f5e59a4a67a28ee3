"""What is new at a glance: angle and odds as in a score, on items that are left out, and what is said of it."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers.oracles import small_mlp
from tests.helpers.trained_models import drawings, trained
from vma import VMA
from vma.fewshot import ImageMemory, glance
from vma.fewshot.glance import looks, novel, usual_looks
from vma.fewshot.lookup import look_up
from vma.fewshot.novelty import Measures, rule_of
from vma.fewshot.scores import nearest_angle, odds_of_turned, turned_copies

SIZE = (9, 8)
LABELS = ["a", "b", "a", "c", "b", "b"]
TARGETS = drawings(5, SIZE, seed=9)


@pytest.fixture
def memory(tmp_path: Path) -> ImageMemory:
    model = trained(tmp_path / "run", small_mlp(height=SIZE[0], width=SIZE[1]))
    return model.remember(drawings(6, SIZE), LABELS)


def test_angle_and_odds_are_those_of_a_score(memory: ImageMemory) -> None:
    norm = memory.norm(samples=2)
    assert norm.turned is not None
    x = memory.items.new_tensor(TARGETS)
    for keyed in (memory.keyed, memory.keyed.only(torch.arange(6) != 2)):
        found = looks(memory.model, keyed, norm.turned, memory.model.addressing.queries(x))
        for row, each in zip(found, x, strict=True):
            look = look_up(memory.model, keyed, each[None])
            expected = nearest_angle(look), odds_of_turned(look, norm.turned)
            np.testing.assert_allclose(row, expected, rtol=1e-9)


def test_what_is_usual_leaves_each_item_out_and_then_its_class_at_a_glance(memory: ImageMemory) -> None:
    known, new, chosen = [], [], (0, 1, 2, 4, 5)  # the only c has no other of its kind
    for i in chosen:
        for rows, gone in ((known, [i]), (new, [j for j in range(6) if LABELS[j] == LABELS[i]])):
            rest, copied = memory.forget(gone), [j for j in chosen if j not in gone]
            copies = turned_copies(memory.model, memory.keyed, copied)
            look = look_up(memory.model, rest.keyed, memory.items[i : i + 1])
            rows.append((nearest_angle(look), odds_of_turned(look, copies)))
    expected, found = rule_of(np.array(known), np.array(new)), memory.looks.rule
    assert found is not None
    assert found.slopes == pytest.approx(expected.slopes)
    assert found.slopes.surprise == 0
    assert (found.offset, found.freedom) == pytest.approx((expected.offset, expected.freedom))


def test_novel_is_what_the_rule_says(memory: ImageMemory) -> None:
    norm = memory.looks
    assert norm.rule is not None
    assert norm.turned is not None
    x = memory.items.new_tensor(np.concatenate((TARGETS, 1 - TARGETS)))
    rows = looks(memory.model, memory.keyed, norm.turned, memory.model.addressing.queries(x))
    expected = [norm.rule.p_value(Measures(0.0, *row)) < 0.05 for row in rows.tolist()]
    assert novel(look_up(memory.model, memory.keyed, x), norm) == expected


def test_new_images_are_called_new(memory: ImageMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vma.fewshot.image_memory.novel", lambda *_: [True, False, None])
    new, known, unsure = memory.recognise(TARGETS[:3])
    assert (new.novel, new.verdict) == (True, f"new: closest to {new.label}")
    assert repr(new).startswith(f"Recognition(new: closest to {new.label}, ")
    assert (known.novel, known.verdict) == (False, known.label)
    assert (unsure.novel, unsure.verdict) == (None, unsure.label)


def test_novelty_that_cannot_be_told_has_a_reason(memory: ImageMemory) -> None:
    (found,) = memory[:3].recognise(TARGETS[0])
    assert found.novel is None
    assert found.reason == (
        "novelty needs 4 or more items that share their label with another; this memory has 2"
    )


def test_novelty_costs_nothing_where_it_is_not_asked(
    memory: ImageMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(glance, "looks", lambda *_: calls.append(1))
    (found,) = memory.recognise(TARGETS[0], novelty=False)
    assert (found.novel, found.reason, calls) == (None, "", [])
    assert "looks" not in vars(memory)


def test_what_is_usual_is_computed_once(memory: ImageMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    remember = VMA.remember
    monkeypatch.setattr(
        VMA, "remember", lambda model, items: counts.append(len(items)) or remember(model, items)
    )
    for _ in range(2):
        memory.recognise(TARGETS)
    assert counts == [15]  # three turned copies of each of five items
    memory.forget(5).recognise(TARGETS)
    assert len(counts) == 2
    one_class = memory.relabel(range(6), "a")
    assert usual_looks(one_class.model, one_class.keyed, one_class.labels).rule is not None
