"""`vma evaluate RUN QUESTION`."""

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
from vma.evaluation.calibration import CalibrationQuestion, calibration
from vma.evaluation.classification import ClassificationQuestion, classify
from vma.evaluation.episodes import EpisodeQuestion, nll
from vma.evaluation.novelty import NoveltyQuestion, novelty
from vma.evaluation.posterior import PosteriorQuestion, posterior
from vma.evaluation.results import answer
from vma.evaluation.samples import SamplesQuestion, samples
from vma.evaluation.subject import Subject, open_subject
from vma.evaluation.sweeps import ClassesQuestion, ShotsQuestion, classes_sweep, shots_sweep
from vma.evaluation.tables import table
from vma.evaluation.units import Evaluation
from vma.files import write_atomically
from vma.training.allocation import keep_memory
from vma.training.processes import processes
from vma.training.runs import Run

QUESTIONS: dict[str, tuple[Any, Callable[[Subject, Any], Evaluation], str]] = {
    "nll": (EpisodeQuestion, nll, "−log p(x|M), reconstruction, KL_a, KL_z; use of a learned memory"),
    "classes": (ClassesQuestion, classes_sweep, "the same as classes are added to the memory (Figure 5A)"),
    "shots": (ShotsQuestion, shots_sweep, "the same as items are added to every class (Figure 5B)"),
    "classify": (ClassificationQuestion, classify, "few-shot classification, 5 and 20 ways, 1 and 5 shots"),
    "calibration": (CalibrationQuestion, calibration, "do the probabilities of recognition mean what they say"),
    "novelty": (NoveltyQuestion, novelty, "is what is new told from what is known, and at how many false alarms"),
    "posterior": (PosteriorQuestion, posterior, "where the model looks, and how it flags what is new (Figure 3)"),
    "samples": (SamplesQuestion, samples, "samples from p(x|M) by item or class (Figures 2B, 4A)"),
}  # fmt: skip
FIGURES = {  # who draws the picture of an answer: imported only then, since plotting takes a second to import
    "calibration": "vma.evaluation.reliability:draw_reliability",
    "novelty": "vma.evaluation.detection:draw_detection",
}


def usage() -> str:
    """The text of `vma evaluate --help`."""
    rows = [f"  {name:<11} {about}" for name, (_, _, about) in QUESTIONS.items()]
    head = "usage: vma evaluate RUN [QUESTION] [options]   RUN is the folder of a run; QUESTION is nll, or one of"
    tail = "vma evaluate RUN QUESTION --help explains the options."
    several = "Several processes: torchrun --nproc-per-node N -m vma evaluate RUN ..."
    return "\n".join([head, *rows, "", tail, several])


Question = TypeVar("Question")


@dataclass(frozen=True)
class Options(Generic[Question]):
    """Where and how to evaluate.

    Attributes:
        question: What is asked.
        data: Folder with the data files; the default is VMA_DATA, then the cache, then a download.
        part: Part of the data.
        out: Folder for the answers; the default is the run's own `evaluations`.
        device: auto, cpu, cuda or cuda:N.
        threads: Threads of torch; 0 for torch's own choice.
    """

    question: Annotated[Question, tyro.conf.arg(name="")]
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
    if name not in QUESTIONS:
        raise unknown_name("question", name, QUESTIONS)
    kind, ask, _ = QUESTIONS[name]
    form: Any = Options[kind]  # type: ignore[valid-type]
    options = tyro.cli(form, default=Options(kind()), args=rest, prog=f"vma evaluate RUN {name}")
    ask_run(run, ask, options, shlex.join(["vma", "evaluate", *arguments]))


def ask_run(run: Run, ask: Callable[[Subject, Any], Evaluation], options: Options[Any], command: str) -> None:
    """Put a question to the model of `run`, alone or as one of torchrun's processes."""
    check_counts(options, threads=0)
    if options.threads:
        torch.set_num_threads(options.threads)
    keep_memory()
    with processes(options.device) as here:
        subject = open_subject(run, data=options.data, part=options.part, device=here.device)
        evaluation = ask(subject, options.question)
        folder = options.out or run.folder / "evaluations"
        show = progress if here.is_first and sys.stderr.isatty() else None
        found = answer(evaluation, folder, here, command=command, show=show)
        if here.is_first:
            Console().print(table(found), highlight=False)
            print(f"The answer: {found['file']}")
            if found["evaluation"] in FIGURES:
                print(f"Its figure: {draw(found)}")


def draw(found: dict[str, Any]) -> Path:
    """Draw the figure of an answer, beside its file."""
    picture: bytes = pkgutil.resolve_name(FIGURES[found["evaluation"]])(found)
    path = Path(found["file"]).with_suffix(".png")
    write_atomically(path, picture)
    return path


def progress(done: int, units: int) -> None:
    """A line that is written over: how far it is."""
    print(f"\r{done} of {units}", end="\n" if done == units else "", file=sys.stderr, flush=True)
