"""`recall`: items of a memory on disk are found again, and so are others of their label."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers.known_models import coded
from tests.helpers.known_models import trained as as_run
from tests.helpers.oracles import small_mlp
from tests.helpers.trained_models import trained
from vma.errors import InputError
from vma.evaluation import RecallOptions, RecallResults, TrainedRun, answer, recall
from vma.evaluation.tables import table
from vma.fewshot import TrainedModel
from vma.runs.processes import Processes

PAIRS = 12


def images() -> np.ndarray:
    """Pairs of the same drawing, each pair with a label of its own."""
    bits = [[(number >> place) & 1 for place in range(16)] for number in range(257, 257 + 3 * PAIRS, 3)]
    return np.repeat(np.array(bits, np.float32).reshape(PAIRS, 4, 4), 2, 0)


def tied(folder: Path) -> TrainedModel:
    """A model whose keys and queries are of one network."""
    return trained(folder, replace(small_mlp(), tied=True))


@pytest.fixture
def run(tmp_path: Path) -> TrainedRun:
    found = tied(tmp_path / "run")
    memory = found.create_memory(tmp_path / "m")
    memory.add(list(images()), [f"pair {i // 2}" for i in range(2 * PAIRS)])
    memory.add([np.eye(4)])
    return as_run(found.model, coded(2, 2))


def test_an_item_is_found_again_and_without_it_its_twin(run: TrainedRun, tmp_path: Path) -> None:
    for leave_out in (False, True):
        options = RecallOptions(tmp_path / "m", targets=25, leave_out=leave_out, samples=16)
        found = recall(run, options).results()
        assert found.number_of_targets == (24 if leave_out else 25)
        assert found.items == 25
        assert np.isfinite(found.nll.value)
        assert 0 < found.own_mass.value < 1
        # Keys and queries are of one network, so that an item is nearest to itself; and so is its twin, whose
        # key is the same: one of each pair comes first, for both of them. Without the item its twin is first.
        assert found.own_first.value == (1 if leave_out else (PAIRS + 1) / 25)


def test_the_answer_is_written_read_again_and_shown(run: TrainedRun, tmp_path: Path) -> None:
    evaluation = recall(run, RecallOptions(tmp_path / "m", targets=9, samples=8))
    here = Processes(0, 1, torch.device("cpu"))
    found = answer(evaluation, tmp_path / "answers", here)
    assert isinstance(found.results, RecallResults)
    assert found.results == answer(evaluation, tmp_path / "answers", here).results
    assert "the item itself" in str([list(column.cells) for column in table(found).columns])


def test_what_is_no_memory_or_has_no_labels_is_said(run: TrainedRun, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a memory on disk: name one with --index"):
        recall(run, RecallOptions(tmp_path))
    tied(tmp_path / "other").create_memory(tmp_path / "plain").add([np.eye(4)])
    with pytest.raises(InputError, match="has no items that share a label"):
        recall(run, RecallOptions(tmp_path / "plain", leave_out=True))
