"""The comparison of recipes pairs its runs by seed, and goes on where it was cut."""

import json
from pathlib import Path

import pytest

from benchmarks import recipes, recipes_figure
from benchmarks.recipes import RECIPES, Options, main, summary, table


def row(recipe: str, seed: int, nll: float) -> dict[str, object]:
    curve = [{"seconds": 1.0, "valid_nll": 2 * nll}, {"seconds": 2.0, "valid_nll": nll}]
    return {"recipe": recipe, "seed": seed, "updates": 100 + seed, "valid_nll": nll, "curve": curve}


def test_gains_are_over_the_paper_with_the_same_seed() -> None:
    other = list(RECIPES)[1]
    rows = [row("paper", 0, 100.0), row("paper", 1, 110.0), row(other, 0, 95.0), row(other, 1, 103.0)]
    paper, better = summary([*rows, row(other, 2, 1.0)])  # there is no run of the paper's with seed 2
    assert paper["gain"] == 0.0
    assert (better["seeds"], better["updates"], better["valid_nll"]) == (2, 100, 99.0)
    assert better["gain"] == pytest.approx(6.0)
    assert better["gain_error"] == pytest.approx(1.0)  # gains of 5 and 7: their deviation √2, over √2
    assert table(rows)[1] == f"| {other} | 100 | 198.0 | 99.0 | 6.0 ± 1.0 |"


def test_what_is_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, int]] = []

    def run(name: str, seed: int, options: Options) -> dict[str, object]:
        ran.append((name, seed))
        return row(name, seed, 1.0)

    monkeypatch.setattr(recipes, "run", run)
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    main(Options(first, seeds=(0, 1), part=0, parts=2))
    main(Options(second, seeds=(0, 1), part=1, parts=2))
    assert sorted(ran) == sorted((name, seed) for name in RECIPES for seed in (0, 1))
    main(Options(first, seeds=(0, 1), join=(second,)))
    assert len(ran) == 2 * len(RECIPES)
    found = json.loads(first.read_text())
    assert len(found["rows"]) == 2 * len(RECIPES)
    assert [each["recipe"] for each in found["summary"]] == list(RECIPES)


def test_the_figure_shows_every_recipe_and_seed() -> None:
    left, middle, right = recipes_figure.figure().axes
    shown = {line.get_label() for axes in (left, middle) for line in axes.lines}
    assert shown == {row["recipe"] for row in recipes.rows_of(recipes_figure.SHORT_RUNS)}
    assert len(right.lines) == 2 * (1 + 3)
    (paper,) = (line for line in left.lines if line.get_label() == "paper")
    assert f"{paper.get_ydata()[-1]:.1f}" == "143.4"  # as in the table of the lab notes
