"""`vma evaluate RUN EVALUATION`."""

import pkgutil
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import torch
import tyro
from rich.console import Console

from vma.checks import check_counts
from vma.errors import unknown_name
from vma.evaluation.answers import Answer, answer
from vma.evaluation.calibration import CalibrationOptions, calibration
from vma.evaluation.classification import ClassifyOptions, classify
from vma.evaluation.episodes import NllOptions, nll
from vma.evaluation.novelty import NoveltyOptions, novelty
from vma.evaluation.posterior import PosteriorOptions, posterior
from vma.evaluation.recall import RecallOptions, recall
from vma.evaluation.resumable import Evaluation, progress
from vma.evaluation.samples import SamplesOptions, samples
from vma.evaluation.sweeps import ClassesOptions, ShotsOptions, classes_sweep, shots_sweep
from vma.evaluation.tables import table
from vma.evaluation.trained_run import TrainedRun, open_run
from vma.files import write_atomically
from vma.runs.folder import Run
from vma.runs.processes import keep_memory, processes

EVALUATIONS: dict[str, tuple[Any, Callable[[TrainedRun, Any], Evaluation], str]] = {
    "nll": (NllOptions, nll, "−log p(x|M), reconstruction, KL_a, KL_z; use of a learned memory"),
    "classes": (ClassesOptions, classes_sweep, "the same as classes are added to the memory (Figure 5A)"),
    "shots": (ShotsOptions, shots_sweep, "the same as items are added to every class (Figure 5B)"),
    "classify": (ClassifyOptions, classify, "few-shot classification, 5 and 20 ways, 1 and 5 shots"),
    "calibration": (CalibrationOptions, calibration, "do the probabilities of recognition mean what they say"),
    "novelty": (NoveltyOptions, novelty, "is what is new told from what is known, and at how many false alarms"),
    "posterior": (PosteriorOptions, posterior, "where the model looks, and how it flags what is new (Figure 3)"),
    "recall": (RecallOptions, recall, "items of a memory on disk (--index) found again, or others of their label"),
    "samples": (SamplesOptions, samples, "samples from p(x|M) by item or class (Figures 2B, 4A)"),
}  # fmt: skip
FIGURES = {  # what draws an answer's figure; imported only then, since plotting takes a second to import
    "calibration": "vma.evaluation.figures:draw_calibration",
    "novelty": "vma.evaluation.figures:draw_novelty",
}


def usage() -> str:
    """The text of `vma evaluate --help`."""
    rows = [f"  {name:<11} {about}" for name, (_, _, about) in EVALUATIONS.items()]
    head = "usage: vma evaluate RUN [EVALUATION] [options]   RUN is a run's folder, EVALUATION nll or one of"
    tail = "vma evaluate RUN EVALUATION --help explains the options."
    several = "Several processes: torchrun --nproc-per-node N -m vma evaluate RUN ..."
    return "\n".join([head, *rows, "", tail, several])


Chosen = TypeVar("Chosen")


@dataclass(frozen=True)
class Options(Generic[Chosen]):
    """Where and how to evaluate.

    Attributes:
        chosen: What is measured, and how much of it.
        data: Folder with the data files; the default is VMA_DATA, then the cache, then a download.
        part: Part of the data.
        out: Folder for the answers; the default is the run's own `evaluations`.
        device: auto, cpu, cuda or cuda:N.
        threads: Threads of torch; 0 for torch's own choice.
    """

    chosen: Annotated[Chosen, tyro.conf.arg(name="")]
    data: Path | None = None
    part: str = "test"
    out: Path | None = None
    device: str = "auto"
    threads: int = 0


def evaluate_command(arguments: Sequence[str]) -> None:
    """`vma evaluate`."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage())
        return
    run, rest = Run(Path(arguments[0])), list(arguments[1:])
    name = rest.pop(0) if rest and not rest[0].startswith("-") else "nll"
    if name not in EVALUATIONS:
        raise unknown_name("evaluation", name, EVALUATIONS)
    kind, evaluation, _ = EVALUATIONS[name]
    form: Any = Options[kind]  # type: ignore[valid-type]
    options = tyro.cli(form, default=Options(kind()), args=rest, prog=f"vma evaluate RUN {name}")
    evaluate_run(run, evaluation, options, shlex.join(["vma", "evaluate", *arguments]))


def evaluate_run(
    run: Run, function: Callable[[TrainedRun, Any], Evaluation], options: Options[Any], command: str
) -> None:
    """Evaluate the model of `run`, alone or as one of torchrun's processes."""
    check_counts(options, threads=0)
    if options.threads:
        torch.set_num_threads(options.threads)
    keep_memory()
    with processes(options.device) as here:
        trained = open_run(run, data=options.data, part=options.part, device=here.device)
        evaluation = function(trained, options.chosen)
        folder = options.out or run.folder / "evaluations"
        show = progress if here.is_first and sys.stderr.isatty() else None
        found = answer(evaluation, folder, here, command=command, show=show, formerly=trained.formerly)
        if here.is_first:
            Console().print(table(found), highlight=False)
            print(f"The answer: {found.file}")
            if found.evaluation in FIGURES:
                print(f"Its figure: {draw(found)}")


def draw(found: Answer) -> Path:
    """Draw the figure of an answer, beside its file."""
    picture: bytes = pkgutil.resolve_name(FIGURES[found.evaluation])(found)
    path = Path(found.file).with_suffix(".png")
    write_atomically(path, picture)
    return path
