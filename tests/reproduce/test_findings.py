"""The findings of saved answers: ours beside the paper's numbers, where those were measured alike."""

from dataclasses import replace

import pytest

from tests.helpers.small_experiments import GOLDEN, papers_tasks, typed
from vma.errors import InputError
from vma.evaluation import Answer
from vma.reproduce.crossover import TimingResults, in_words
from vma.reproduce.registry import EXPERIMENTS
from vma.reproduce.table1 import PAPER, SHOTS, Cell, paper_number


def test_figure_5a_without_its_baselines() -> None:
    answers = {key: value for key, value in GOLDEN["fig5a-classes"].items() if key.startswith("vma")}
    rows = EXPERIMENTS["fig5a-classes"].findings(typed(answers))
    assert len([row for row in rows if "NLL" in row.what]) == 7
    points = answers["vma"]["results"]["points"]
    found = [row.value for row in rows if "mass of q(a|x)" in row.what][: len(points)]
    assert found == [point["own_class_mass"]["value"] for point in points]


def test_classification_has_the_papers_numbers_for_the_papers_tasks() -> None:
    rows = EXPERIMENTS["text-classification"].findings(typed(papers_tasks()))
    assert [row.paper for row in rows] == ["91 %", "90 %", "no number", "no number"]
    assert all(row.low is not None and row.high is not None for row in rows)


def test_table_1_has_the_papers_numbers_where_they_were_measured_alike() -> None:
    assert sum(len(line) for model in PAPER.values() for line in model.values()) == 49
    cell = Cell("disjoint", "per-class", 16, 19)
    assert paper_number("vma", cell) == 77.0
    assert paper_number("vma", replace(cell, protocol="with-replacement")) is None
    assert paper_number("gmn", replace(cell, classes=1)) is None
    alike = Cell("with-replacement", "total", 4, 1)
    assert [paper_number("gmn", replace(alike, shots=t)) for t in SHOTS] == [
        88.3,
        87.3,
        86.7,
        85.4,
        84.0,
        80.2,
        73.7,
    ]
    assert paper_number("gmn", replace(alike, classes=1, counts="per-class")) == 83.3


@pytest.mark.parametrize(
    ("crossing", "said"), [(None, "not up to 64"), (8.0, "8, the smallest that was timed"), (47.6, "48")]
)
def test_a_crossing_in_words(crossing: float | None, said: str) -> None:
    answer = Answer("timing", {"sizes": [8, 64]}, TimingResults([], {"soft": crossing}))
    assert in_words(answer, "soft") == said


def test_estimators_that_were_never_validated_cannot_be_compared() -> None:
    answers = {key: {**value} for key, value in GOLDEN["estimators"].items()}
    rows = [{"update": 7, "seconds": 1.0, "nll": 99.0}]
    answers["curve exact"]["results"] = {**answers["curve exact"]["results"], "rows": rows}
    with pytest.raises(InputError, match="larger --budget"):
        EXPERIMENTS["estimators"].findings(typed(answers))
