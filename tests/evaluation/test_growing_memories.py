"""Memories that nest in each other: the same targets and items along a sweep, and the log C line."""

import math

import pytest

from tests.helpers.known_models import CONFIG, COST, Perfect, code, coded, trained
from vma import InputError
from vma.evaluation import ClassesOptions, ShotsOptions, classes_sweep, shots_sweep
from vma.evaluation.growing_memories import GrowingMemories


@pytest.mark.parametrize("classes", [1, 2, 3, 5, 10])
def test_every_class_is_a_targets_own_once(classes: int) -> None:
    nested = GrowingMemories(coded(10, 6), targets=2, shots=3)
    seen = []
    for number in range(nested.blocks(classes)):
        block = nested.block(classes, number, 3)
        assert block.memory is not None
        assert block.memory.labels is not None
        assert len(block.memory) == 3 * classes
        own = code(block.memory.items)[block.memory.labels.repeat(1).argsort(stable=True)]
        for x, label in zip(block.targets, block.labels, strict=True):
            assert int(code(x[None])) == int(own[3 * int(label)])
        seen += code(block.targets).tolist()
    assert sorted(seen) == sorted([*range(10), *range(10)])


def test_targets_and_items_are_the_same_along_the_sweep_and_never_meet() -> None:
    nested = GrowingMemories(coded(8, 6), targets=1, shots=4)
    alone = {int(code(b.targets)): b for b in (nested.block(1, n, 4) for n in range(8))}
    together = nested.block(8, 0, 2)
    assert together.memory is not None
    for x, label in zip(together.targets, together.labels, strict=True):
        first = alone[int(code(x[None]))]
        assert first.memory is not None
        assert x.equal(first.targets[0])
        assert together.memory.items[2 * int(label) : 2 * int(label) + 2].equal(first.memory.items[:2])
        assert not any(x.equal(item) for item in first.memory.items)


def test_the_seed_decides() -> None:
    one, same, other = (GrowingMemories(coded(8, 6), 1, 2, seed) for seed in (0, 0, 1))
    assert (one.images == same.images).all()
    assert (one.images != other.images).any()


def test_too_few_images_or_classes_are_named() -> None:
    with pytest.raises(InputError, match="need 7 images of a class"):
        GrowingMemories(coded(4, 6), targets=2, shots=5)
    with pytest.raises(InputError, match="memory of 5 classes"):
        GrowingMemories(coded(4, 6)).blocks(5)
    with pytest.raises(InputError, match="no block 4"):
        GrowingMemories(coded(4, 6)).block(1, 4, 1)


def test_a_perfect_model_lies_on_the_log_c_line() -> None:
    options = ClassesOptions(classes=(1, 2, 4, 0), shots=2, samples=8)
    evaluation = classes_sweep(trained(Perfect(CONFIG), coded(8, 5)), options)
    points = evaluation.results().points
    assert [p.classes for p in points] == [1, 2, 4, 8]
    for p in points:
        assert p.nll.value == pytest.approx(COST + math.log(p.classes), abs=1e-9)
        assert p.line == pytest.approx(p.nll.value, abs=1e-9)
        assert p.rise.value == pytest.approx(math.log(p.classes), abs=1e-9)
        assert p.own_class_mass.value == pytest.approx(1.0)
        assert p.own_class_first.value == 1.0
        assert p.kl_a.value == pytest.approx(math.log(p.classes), abs=1e-9)


def test_more_shots_of_a_perfect_model_change_nothing() -> None:
    evaluation = shots_sweep(trained(Perfect(CONFIG), coded(8, 5)), ShotsOptions(shots=(1, 2, 4), samples=8))
    results = evaluation.results()
    assert [p.memory for p in results.points] == [8, 16, 32]
    assert results.number_of_targets == 8
    for p in results.points:
        assert p.nll.value == pytest.approx(COST + math.log(8), abs=1e-9)
    with pytest.raises(InputError, match="1 or more items"):
        shots_sweep(trained(Perfect(CONFIG), coded(8, 5)), ShotsOptions(shots=(0, 1)))
