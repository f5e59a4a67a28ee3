"""A few of the kills of `make kills`: nothing acknowledged is lost, and the end is that of an unbroken run."""

import random
from pathlib import Path

import pytest

from tests.kills.killing import kill_often
from tests.kills.scenarios import SCENARIOS, Scenario

KILLS = 3  # of each


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[each.name for each in SCENARIOS])
def test_nothing_acknowledged_is_lost(scenario: Scenario, tmp_path: Path) -> None:
    done = kill_often(scenario, tmp_path, KILLS, random.Random(scenario.name))
    assert done.kills == KILLS
