"""Answers on disk: each becomes a dataclass, loses nothing on the way back, and is found by its digest."""

import json
import re
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.small_experiments import GOLDEN
from vma.evaluation import Evaluation
from vma.evaluation.answers import answer_of, newest
from vma.evaluation.json_values import plain
from vma.evaluation.trained_run import ModelDescription
from vma.reproduce.pipeline import RESULTS

FOLDER = Path(__file__).parents[2] / "results"
FILES = sorted(
    path for path in FOLDER.rglob("*.json") if path.read_text().lstrip().startswith('{\n "evaluation"')
)
SAVED = [(name, key) for name, answers in GOLDEN.items() for key in answers]


def text(values: dict[str, Any]) -> str:
    """JSON in which only the order of keys is left open: 6 and 6.0 differ."""
    return json.dumps({key: value for key, value in values.items() if key != "file"}, sort_keys=True)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_an_answer_is_read_and_written_as_it_is(path: Path) -> None:
    values = json.loads(path.read_text())
    found = answer_of(values, RESULTS, path.name)
    assert is_dataclass(found.results)
    assert text(found.to_json()) == text(values)
    assert found.file == path.name


@pytest.mark.parametrize(("name", "key"), SAVED)
def test_an_answer_of_an_earlier_version_is_read_and_written_as_it_is(name: str, key: str) -> None:
    values = GOLDEN[name][key]
    found = answer_of(values, RESULTS)
    assert is_dataclass(found.results) == (found.evaluation != "update-time")  # which there no longer is
    assert text(found.to_json()) == text(values)


def test_there_are_answers_of_every_kind() -> None:
    kinds = {json.loads(path.read_text())["evaluation"] for path in FILES}
    assert kinds == set(RESULTS)


@pytest.mark.parametrize("kind", ["nll", "samples", "curve"])
def test_an_answer_is_found_by_its_digest(kind: str) -> None:
    (path, *_) = [path for path in FILES if re.match(rf"{kind}-[0-9a-f]{{8}}-", path.name)]
    values = json.loads(path.read_text())
    about = answer_of(values, RESULTS).about
    parts = values["episodes"] if kind == "nll" else 1
    evaluation = Evaluation(kind, about, parts, lambda number: number, int, sum)
    assert newest(path.parent, evaluation) == path


def test_a_model_is_described_as_its_file_says() -> None:
    (path, *_) = [path for path in FILES if path.name.startswith("in-order-nll")]
    found = answer_of(json.loads(path.read_text()), RESULTS)
    assert isinstance(found.model, ModelDescription)
    assert plain(found.model) == found.about["model"]
    assert plain(found.data) == found.about["data"]
    assert found.models == {"": found.model}
