"""The queue of long runs: what is complete or taken is left alone, and what fails is not tried for ever."""

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import campaign, shared_runs
from benchmarks.campaign import Options, Planned, main, next_run, table
from tests.helpers.small_runs import fit, small
from vma.runs.folder import Run

TWO = [Planned("one", "glyphs-vae", 0.1, "a test"), Planned("two", "glyphs-vae --seed 1", 0.1, "a test")]


@pytest.fixture(autouse=True)
def two_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "PLAN", TWO)


def test_the_next_run_is_the_first_that_is_neither_complete_nor_taken(tmp_path: Path) -> None:
    assert next_run(TWO, tmp_path, Counter()) == TWO[0]
    with Run(tmp_path / "one").lock():
        assert next_run(TWO, tmp_path, Counter()) == TWO[1]
    fit(small(updates=2), tmp_path / "one")
    assert next_run(TWO, tmp_path, Counter()) == TWO[1]
    assert next_run(TWO, tmp_path, Counter(two=1)) == TWO[1]
    assert next_run(TWO, tmp_path, Counter(two=2)) is None
    assert "| one | `glyphs-vae` | 0.10 | a test | 2 updates, 0.00 h |" in table(tmp_path)
    assert "| two | `glyphs-vae --seed 1` | 0.10 | a test | no |" in table(tmp_path)


def test_a_run_that_fails_is_tried_twice_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def train(each: Planned, options: Options) -> bool:
        tried.append(each.name)
        if each.name == "two":
            fit(small(updates=2), options.runs / each.name)
        return each.name == "two"

    monkeypatch.setattr(campaign, "train", train)
    main(Options(tmp_path))
    assert tried == ["one", "one", "two"]


def test_a_run_is_started_and_then_resumed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert not campaign.train(Planned("no", "no-such-preset", 0.1, ""), Options(tmp_path))
    assert "no-such-preset" in capfd.readouterr().err
    fit(small(updates=2), tmp_path / "one")
    assert campaign.train(TWO[0], Options(tmp_path))
    assert f"one: --resume {tmp_path / 'one'}" in capfd.readouterr().out


def test_runs_of_a_study_are_taken_once_and_kept_in_order(tmp_path: Path) -> None:
    path, settings = tmp_path / "study.json", {"first": {"a": 1}, "second": {"a": 2}, "third": {"a": 3}}
    assert [shared_runs.claim(path, "second", 0) for _ in range(2)] == [True, False]
    for way, seed in (("second", 0), ("first", 1), ("first", 0)):
        shared_runs.add(path, {"way": way, "seed": seed, "nll": 10.0 + seed}, settings, {"data": "x"})
    assert not shared_runs.claim(path, "first", 1)
    found = json.loads(path.read_text())
    assert [(row["way"], row["seed"]) for row in found["runs"]] == [("first", 0), ("first", 1), ("second", 0)]
    assert (found["data"], list(found["settings"])) == ("x", ["first", "second"])
    lines = shared_runs.table(found["runs"], {"NLL": ("nll", 2.0, 1)}).splitlines()
    assert lines[2:] == ["| first | 2 | 21.0 ± 1.0 |", "| second | 1 | 20.0 |"]
