"""The evaluations beyond those of `vma evaluate`: curves, paired comparisons, the cells of Table 1."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers.small_runs import fit
from vma.data import load_dataset
from vma.data.dataset import Dataset
from vma.errors import InputError
from vma.evaluation.comparison import ComparisonRow
from vma.evaluation.comparison import summary as compared
from vma.evaluation.episodes import NllOptions, nll
from vma.evaluation.json_values import plain
from vma.evaluation.likelihood import TargetMeasures
from vma.evaluation.statistics import Mean
from vma.reproduce.experiment import OpenRuns
from vma.reproduce.run_store import tiny
from vma.reproduce.shared_evaluations import memory_size, planned_comparison, planned_curve, thinned
from vma.reproduce.table1 import Cell, TableOptions, Targets, cells_of, summary, table
from vma.runs.presets import PRESETS

DISJOINT, REPEATED = ("disjoint", "with-replacement")


@pytest.fixture(scope="module")
def open_runs(tmp_path_factory: pytest.TempPathFactory) -> OpenRuns:
    root = tmp_path_factory.mktemp("runs")
    names = {"vma": "omniglot-fewshot-4", "vae": "omniglot-vae", "gmn": "gmn-gmn"}
    return OpenRuns({key: fit(tiny(PRESETS[name]), root / key) for key, name in names.items()})


def test_a_curve_is_thinned_by_means_over_windows() -> None:
    rows = [{"update": i, "seconds": 0.5 * i, "nll": float(i), "kl_a": 1.0, "other": 7} for i in range(1, 11)]
    rows[4]["valid_nll"] = 3.0
    found = thinned(rows, points=4)
    assert [point.update for point in found] == [3, 6, 9, 10]
    assert [point.nll for point in found] == [2.0, 5.0, 8.0, 10.0]
    assert [point.valid_nll for point in found] == [None, 3.0, None, None]
    assert plain(found[0]) == {"update": 3, "seconds": 1.5, "nll": 2.0, "kl_a": 1.0}
    assert thinned(rows, points=10)[0].nll == 1.0
    assert thinned([]) == []


def test_the_curve_of_a_run_is_its_metrics(open_runs: OpenRuns) -> None:
    found = planned_curve("vma").prepare(open_runs).results()
    metrics = open_runs.runs["vma"].metrics()
    assert [point.update for point in found.rows] == [1, 2, 3]
    assert [point.nll for point in found.rows] == pytest.approx([row["nll"] for row in metrics], abs=1e-4)
    assert (found.memory, found.K) == (4, 2)


def test_differences_are_paired_by_target() -> None:
    rows = [
        ComparisonRow({"a": measured(10.0, 50.0), "b": measured(11.0, 51.5)}, [0, 1]),
        ComparisonRow({"a": measured(90.0), "b": measured(90.5)}, [1]),
    ]
    found = compared(rows)
    assert found.number_of_targets == 3
    assert found.models["a"].above_first == Mean(0.0, 0.0)
    assert found.models["b"].above_first.value == pytest.approx(1.0)
    assert found.models["b"].above_first.error == pytest.approx(0.5 / 3**0.5)


def measured(*nll: float) -> TargetMeasures:
    return TargetMeasures(list(nll), *([0.0] * len(nll) for _ in range(5)))


def test_a_comparison_asks_each_model_what_nll_asks_it(open_runs: OpenRuns) -> None:
    options = NllOptions(episodes=2, classes=3, targets=2, shots=2, samples=2)
    both = planned_comparison(("vma", "vae"), options).prepare(open_runs)
    found = both.results()
    for key in ("vma", "vae"):
        expected = nll(open_runs.trained(key), options).results()
        assert found.models[key].nll == expected.nll
        assert both.about["models"][key]["kind"] == key
    assert "model" not in both.about


@pytest.fixture(scope="module")
def glyphs() -> Dataset:
    return load_dataset("glyphs", "test", size=16)


def same(x: torch.Tensor, items: torch.Tensor) -> bool:
    return bool((items == x).all(-1).all(-1).any())


def test_cells_are_all_that_differ() -> None:
    cells = cells_of(TableOptions(classes=(1, 2, 4, 16)))
    assert len(cells) == len(set(cells)) == 98
    assert not [cell for cell in cells if cell.classes == 1 and cell.counts == "total"]


def test_every_cell_has_the_same_targets_and_memories_nest(glyphs: Dataset) -> None:
    targets = Targets(glyphs)
    for number in range(5):
        few, many = (targets.draw(number, Cell("disjoint", "per-class", 3, shots)) for shots in (2, 5))
        assert torch.equal(few[0], many[0])
        for label in range(3):
            own = [memory.items[memory.labels == label] for _, memory in (few, many)]
            assert torch.equal(own[0], own[1][:2])
        for cell in cells_of(TableOptions(classes=(1, 4), shots=(1, 19))):
            assert torch.equal(targets.draw(number, cell)[0], few[0])


def test_a_disjoint_memory_never_holds_the_target(glyphs: Dataset) -> None:
    targets = Targets(glyphs)
    for counts in ("per-class", "total"):
        for number in range(40):
            x, memory = targets.draw(number, Cell("disjoint", counts, 2, 19))
            assert not same(x, memory.items)


def test_per_class_and_total_count_items(glyphs: Dataset) -> None:
    targets = Targets(glyphs)
    _, memory = targets.draw(0, Cell("disjoint", "per-class", 4, 5))
    assert torch.bincount(memory.labels).tolist() == [5, 5, 5, 5]
    sizes = [
        torch.bincount(targets.draw(number, Cell("disjoint", "total", 4, 19))[1].labels, minlength=4)
        for number in range(200)
    ]
    assert {int(each.sum()) for each in sizes} == {19}
    share = torch.stack(sizes).double().mean(0) / 19
    assert share.numpy() == pytest.approx(np.full(4, 0.25), abs=4 * (0.25 * 0.75 / (19 * 200)) ** 0.5)


@pytest.mark.parametrize(("classes", "chance"), [(1, 1 - 0.95**19), (2, 1 - 0.975**19)])
def test_with_replacement_the_target_is_in_memory_as_often_as_in_gmns_code(
    glyphs: Dataset, classes: int, chance: float
) -> None:
    """0.62 and 0.38 of 19 images in all, for one and two classes."""
    targets = Targets(glyphs)
    cell = Cell("with-replacement", "per-class" if classes == 1 else "total", classes, 19)
    drawn = [targets.draw(number, cell) for number in range(400)]
    share = sum(same(x, memory.items) for x, memory in drawn) / 400
    assert share == pytest.approx(chance, abs=4 * (chance * (1 - chance) / 400) ** 0.5)


def test_more_than_there_is_is_refused(glyphs: Dataset) -> None:
    with pytest.raises(InputError, match="more than glyphs has"):
        Targets(glyphs).draw(0, Cell("disjoint", "per-class", 1, 20))


@pytest.mark.parametrize("key", ["vma", "gmn"])
def test_the_table_is_the_mean_of_bounds(open_runs: OpenRuns, key: str) -> None:
    trained = open_runs.trained(key)
    options = TableOptions(classes=(1, 2), shots=(3,), targets=12, samples=1)
    evaluation = table(trained, options)
    assert evaluation.parts == 6 * 2
    rows = [evaluation.part(number) for number in range(evaluation.parts)]
    cells = summary(rows).cells
    assert len(cells) == 6
    assert rows[0].nll == evaluation.part(0).nll
    assert cells[0].nll.value == pytest.approx(np.mean(rows[0].nll + rows[1].nll))
    assert (len(rows[0].nll), len(rows[1].nll)) == (10, 2)
    x, memory = Targets(trained.dataset).draw(0, cells_of(options)[0])
    source = trained.generator(0, 0)
    with torch.no_grad():
        expected = -trained.model.bound(x, memory, 1, generator=source)
    assert rows[0].nll[0] == pytest.approx(float(expected), rel=1e-5)


def test_a_run_is_opened_once(open_runs: OpenRuns, tmp_path: Path) -> None:
    assert open_runs.trained("vma") is open_runs.trained("vma")
    assert open_runs.trained("vma", "train").dataset.split != open_runs.trained("vma").dataset.split


def test_memory_sizes(open_runs: OpenRuns) -> None:
    trained = open_runs.trained("vma")
    learned = replace(trained.settings, model=replace(trained.settings.model, learned_items=6))
    assert memory_size(replace(trained, settings=learned)) == 6
    assert memory_size(open_runs.trained("vae")) == 0
    assert memory_size(open_runs.trained("gmn")) == 0
