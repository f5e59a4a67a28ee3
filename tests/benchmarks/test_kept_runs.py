"""A kept run is evaluated, and begun with, as the run itself is, but for half precision."""

from pathlib import Path

import pytest
import torch

import vma
from benchmarks.kept_runs import keep
from tests.helpers.small_runs import SMALL, fit, small
from vma.evaluation import NllOptions, nll, open_run
from vma.runs.folder import Run
from vma.storage import identity, load_model


def test_a_kept_run_says_of_itself_what_the_run_does(tmp_path: Path) -> None:
    torch.set_default_dtype(torch.float32)
    run = fit(small(threads=0, updates=20), tmp_path / "run")
    kept = keep(run, tmp_path / "kept/run")
    assert {path.name for path in kept.folder.iterdir()} == {"run.json", "metrics.jsonl", "model.safetensors"}
    one, two = open_run(run), open_run(kept)
    assert two.about.model.weights == identity(load_model(kept.model_file).float())[:16]
    assert (two.about.model.updates, two.about.model.settings) == (20, one.about.model.settings)
    options = NllOptions(episodes=2, classes=4, targets=2, shots=2, samples=8)
    found = [nll(each, options).results().nll.value for each in (one, two)]
    assert found[0] == pytest.approx(found[1], rel=1e-3)


def test_a_run_that_is_not_at_its_end_is_not_kept(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    run.create(SMALL)
    with pytest.raises(vma.InputError, match="not at its end"):
        keep(run, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
