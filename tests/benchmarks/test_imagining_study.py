"""The study of imagined training sets: tasks are disjoint, sets as large as said, numbers those written."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import vma
from benchmarks.imagining_figure import figure_of, table
from benchmarks.imagining_study import (
    EXTRAS,
    Examples,
    Options,
    cnn,
    logistic,
    study,
    task_of,
    training_sets,
)
from vma.data import load_dataset

ROOT = Path(__file__).parents[2]
OPTIONS = Options(Path("unused.json"), ways=3, shots=(1, 2), extra=4, held=2, updates=2)


def test_training_and_test_drawings_are_apart() -> None:
    data = load_dataset("glyphs", "test")
    real, test = task_of(data, OPTIONS, shots=2, draw=0)
    assert (real.labels.tolist(), test.labels.tolist()) == ([0, 0, 1, 1, 2, 2],) * 2
    same = (real.images[:, None] == test.images[None]).flatten(2).all(2)
    assert not same.any()


def test_training_sets_have_as_many_additional_images_of_each_class() -> None:
    real, _ = task_of(load_dataset("glyphs", "test"), OPTIONS, shots=2, draw=0)
    models = {name: vma.load("omniglot-crisp") for name in ("omniglot-crisp", "omniglot")}
    sets = training_sets(models, real, OPTIONS, shots=2, seed=0)
    assert tuple(sets) == EXTRAS
    for name, each in sets.items():
        assert torch.equal(each.images[:6], real.images)
        assert each.labels.bincount().tolist() == [2 if name == "none" else 6] * 3


def test_classifiers_learn_what_is_easy() -> None:
    images = torch.zeros(40, 26, 26)
    images[:20, :13], images[20:, 13:] = 1, 1
    easy = Examples(images, torch.tensor([0, 1]).repeat_interleave(20))
    options = Options(Path("unused.json"), ways=2, updates=20)
    assert logistic(easy, easy, options, 0) == cnn(easy, easy, options, 0) == 1


def test_the_study_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[int, int]] = []

    def one_task(models: object, data: object, options: Options, shots: int, draw: int) -> dict[str, object]:
        done.append((shots, draw))
        return {
            "shots": shots,
            "draw": draw,
            "right": {"logistic, none": 0.5, "logistic, affine": 0.6 + 0.1 * draw},
        }

    monkeypatch.setattr("benchmarks.imagining_study.one_task", one_task)
    monkeypatch.setattr(
        "benchmarks.imagining_study.dataset_of", lambda options: load_dataset("glyphs", "test")
    )
    for draws in (1, 2):
        study(Options(tmp_path / "study.json", draws=draws))
    assert done == [(1, 0), (5, 0), (1, 1), (5, 1)]
    (row,) = [
        row for row in json.loads((tmp_path / "study.json").read_text())["results"]
        if (row["shots"], row["extra"]) == (5, "affine")
    ]  # fmt: skip
    assert row["gain"]["value"] == pytest.approx(0.15)
    assert row["gain"]["error"] == pytest.approx(0.05)
    with pytest.raises(vma.InputError, match="is of other settings"):
        study(Options(tmp_path / "study.json", extra=3))


def answer_of(name: str) -> dict[str, Any]:
    return json.loads((ROOT / f"results/{name}.json").read_text())


def test_a_figure_has_a_row_for_each_answer() -> None:
    panels = figure_of([answer_of(name) for name in ("imagining-study", "imagining-study-fonts")]).axes
    assert len(panels) == 4
    assert all(len(panel.containers) > 0 for panel in panels)


def test_the_documents_state_what_the_study_found() -> None:
    note = (ROOT / "docs/lab-notes/does-imagining-help.md").read_text()
    use = " ".join((ROOT / "docs/use.md").read_text().split())
    for name in ("imagining-study", "imagining-study-fonts"):
        found = answer_of(name)
        assert {row["draws"] for row in found["results"]} == {20}
        assert table(found["results"]) in note
    for shots in (1, 5):
        for extra in ("none", "affine", "omniglot-crisp"):
            (row,) = [
                r
                for r in found["results"]
                if (r["shots"], r["classifier"], r["extra"]) == (shots, "cnn", extra)
            ]
            assert f"{100 * row['right']['value']:.1f}" in use
    fonts = {(r["shots"], r["extra"]): r["right"] for r in found["results"] if r["classifier"] == "q(a|x)"}
    for shots in (1, 5):
        right = fonts[shots, "omniglot-crisp"]
        assert f"{100 * right['value']:.1f} ± {100 * right['error']:.1f}" in note
    found = answer_of("imagining-study")
    right = {
        (r["shots"], r["classifier"], r["extra"]): f"{100 * r['right']['value']:.1f}"
        for r in found["results"]
    }
    for shots, extra in (
        (1, "none"),
        (1, "affine"),
        (1, "omniglot-crisp"),
        (5, "none"),
        (5, "omniglot-crisp"),
    ):
        assert right[shots, "cnn", extra] in use
    for shots in (1, 5):
        assert right[shots, "q(a|x)", "omniglot-crisp"] in note
    longer = json.loads((ROOT / "results/imagining-study-600-updates.json").read_text())
    numbers = set(re.findall(r"\d+\.\d ± \d+\.\d", note))
    for row in longer["results"]:
        if (row["classifier"], row["shots"]) == ("cnn", 1) and row["extra"] in ("affine", "omniglot-crisp"):
            assert f"{100 * row['right']['value']:.1f} ± {100 * row['right']['error']:.1f}" in numbers
