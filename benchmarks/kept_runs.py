"""Trained runs that are kept with the results, so that they can be evaluated, and trained further, anywhere.

    python -m benchmarks.kept_runs RUN [RUN ...]     # settings, metrics, and weights in half precision

`vma evaluate results/runs/NAME ...` and `--run KEY=results/runs/NAME` take one in place of the run itself, and
`--start results/runs/NAME` begins with its weights. It has no checkpoint, so it cannot be resumed.
"""

from pathlib import Path
from typing import Annotated

import tyro

from vma.errors import InputError
from vma.files import write_atomically
from vma.runs.belonging import is_trained, model_progress
from vma.runs.checkpoint import header_of
from vma.runs.folder import Run
from vma.storage import load_model, save_model

KEPT = Path(__file__).parents[1] / "results/runs"


def keep(run: Run, folder: Path) -> Run:
    """The run in half precision, in a folder of its own."""
    if not is_trained(run):
        raise InputError(f"The run {run.folder} is not at its end: train it further, then keep it.")
    folder.mkdir(parents=True, exist_ok=True)
    save_model(
        load_model(run.model_file).half(), folder / run.model_file.name, notes=header_of(model_progress(run))
    )
    for file in (run.settings_file, run.metrics_file):
        write_atomically(folder / file.name, file.read_bytes())
    return Run(folder)


def main(runs: Annotated[list[Path], tyro.conf.Positional]) -> None:
    """Keep trained runs with the results.

    Args:
        runs: Folders of runs.
    """
    for each in runs:
        print(keep(Run(each), KEPT / each.name).folder)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
