"""The load test in small: thirty clients of all kinds for some seconds; and its own measure."""

from collections import Counter

from tests.load.__main__ import broken, load
from tests.load.crowd import KINDS, Outcome, kind_of


def test_a_small_crowd_is_served() -> None:
    found = load(clients=30, minutes=0.2)
    assert found["broken"] == []
    assert found["answers"]["quick 200"] > 0
    assert found["remembered"] > 0


def test_the_crowd_is_of_all_kinds() -> None:
    assert Counter(kind_of(number) for number in range(100)) == KINDS


def test_broken_promises_are_found() -> None:
    outcome = Outcome(remembered={"a", "b"}, odd=["x"])
    assert broken(outcome, {"a"}, set(), {"log_bytes": 2**30}) == [
        "1 acknowledged changes are not in memory",
        "2 acknowledged changes are not in the file",
        "1 answers were none",
        "nobody was served",
        "the log has grown",
    ]
    kept = Outcome(remembered={"a"}, seconds=[1.0])
    assert broken(kept, {"a"}, {"a"}, {"log_bytes": 0}) == []
