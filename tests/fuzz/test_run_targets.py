"""A fixed budget of the long fuzzing (`make fuzz`): every input ends in an answer or in one sentence."""

import random
from collections.abc import Iterator

import pytest
import torch

from tests.fuzz.run_targets import TARGETS, clean_up
from tests.helpers.fuzzing import GIGABYTES, Tally, Target, attack, peak

INPUTS = 150  # of each kind


@pytest.fixture(scope="module", autouse=True)
def files() -> Iterator[None]:
    """Delete what the attacks wrote."""
    yield
    clean_up()


@pytest.mark.parametrize("target", TARGETS, ids=[each.name for each in TARGETS])
def test_damage_of_any_kind_is_a_sentence(target: Target) -> None:
    torch.set_default_dtype(torch.float32)
    target.make(random.Random(0))
    before, tally = peak(), Tally()
    attack(target, range(INPUTS), tally)
    assert not tally.findings, "\n".join(f"{seed}: {what}" for seed, what in tally.findings)
    assert tally.refused > INPUTS / 20  # the attacks do some damage
    assert tally.refused + tally.answered == INPUTS
    assert peak() - before < GIGABYTES
