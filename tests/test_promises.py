"""Every promise names tests that hold it, and they exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| (?P<promise>.+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
PROMISES = [
    (row["promise"], re.findall(r"`([^`]+)`", row["tests"]))
    for row in ROW.finditer((ROOT / "docs/promises.md").read_text())
    if row["promise"] not in ("promise", "---")
]


@pytest.mark.parametrize(("promise", "tests"), PROMISES, ids=[promise[:40] for promise, _ in PROMISES])
def test_a_promise_is_held_by_tests_that_exist(promise: str, tests: list[str]) -> None:
    assert tests, promise
    for each in tests:
        path = ROOT / each
        files = sorted(path.glob("test_*.py")) if path.is_dir() else [path]
        assert any("\ndef test_" in file.read_text() for file in files), each


def test_promises_are_made() -> None:
    assert len(PROMISES) > 25
