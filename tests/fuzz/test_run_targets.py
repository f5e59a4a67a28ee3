"""A fixed budget of the long fuzzing (`make fuzz`): every input ends in an answer or in one sentence."""

from collections.abc import Iterator

import pytest
import torch

from tests.fuzz.batches import run_batch
from tests.fuzz.run_targets import TARGETS, clean_up
from tests.fuzz.target import Target, made

BUDGET = 150  # inputs of each kind


@pytest.fixture(scope="module", autouse=True)
def files() -> Iterator[None]:
    """Delete the right files in the end."""
    yield
    clean_up()


@pytest.mark.parametrize("target", TARGETS, ids=[each.name for each in TARGETS])
def test_damage_of_any_kind_is_a_sentence(target: Target) -> None:
    torch.set_default_dtype(torch.float32)
    made(target, 1, 0)
    found = run_batch(target, seed=1, start=0, count=BUDGET)
    assert found.failures == []
    assert found.sentence > BUDGET / 20  # the attacks do some damage
    assert found.answer > 0  # and not everywhere
    assert found.answer + found.sentence == found.inputs == BUDGET
