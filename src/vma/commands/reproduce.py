"""`vma reproduce` and `vma report`."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from vma.errors import InputError
from vma.reproduce.experiment import Experiment, Scale
from vma.reproduce.findings import shown
from vma.reproduce.page import write_pages
from vma.reproduce.pipeline import read_collection, reproduce
from vma.reproduce.registry import EXPERIMENTS, find_experiment
from vma.reproduce.run_store import RunStore, given_run
from vma.runs.folder import default_root

USAGE = """usage: vma reproduce --list            every experiment, and the runs it needs
       vma reproduce NAME [options]    train or reuse, evaluate, draw and compare
       vma reproduce NAME --help       explains the options"""


@dataclass(frozen=True)
class Options:
    """How an experiment is made again; a second call goes on where the first was interrupted.

    Attributes:
        budget: Minutes for training and evaluation; 0 for the paper's settings, which take days on a CPU.
        data: Folder with the data files; the default is VMA_DATA, then the cache, then a download.
        out: Folder for the numbers (NAME.json), the answers behind them (NAME/) and the figure (NAME.png).
        runs: Folder of the runs that experiments share; the default is runs/reproduce.
        run: A trained run to use instead of training one, as KEY=FOLDER; may be given several times.
        updates: Updates of every run, its sleep among them, instead of minutes: the same on a slow machine; 0 to
            let the budget decide.
        samples: K of the evaluation; 0 to let the budget decide.
        threads: Threads of torch; 0 for torch's own choice.
        device: auto, cpu, cuda or cuda:N.
        tiny: Everything at a tiny size on invented glyphs: to see that it works, never a result.
    """

    budget: float = 0.0
    data: Path | None = None
    out: Path = Path("results")
    runs: Path | None = None
    run: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    updates: int = 0
    samples: int = 0
    threads: int = 0
    device: str = "auto"
    tiny: bool = False


def reproduce_command(arguments: Sequence[str]) -> None:
    """`vma reproduce`."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
    elif arguments[0] == "--list":
        list_experiments()
    else:
        experiment = find_experiment(arguments[0])
        run(experiment, tyro.cli(Options, args=arguments[1:], prog=f"vma reproduce {experiment.name}"))


def list_experiments() -> None:
    """List the experiments: what the paper reports, and the runs that each needs."""
    table = Table("name", "what the paper reports", "runs", box=None, padding=(0, 1))
    table.columns[0].no_wrap = True
    for name, experiment in EXPERIMENTS.items():
        table.add_row(name, experiment.paper, ", ".join(experiment.needs))
    Console().print(table, highlight=False)


def run(experiment: Experiment, options: Options) -> None:
    """Make one experiment again, and print its findings."""
    if min(options.budget, options.updates, options.samples, options.threads) < 0:
        raise InputError("--budget, --updates, --samples and --threads must not be negative.")
    scale = Scale(options.budget, options.tiny, options.samples, options.updates)
    store = RunStore(
        options.runs or default_root() / "reproduce", options.data, options.device, options.threads
    )
    given = dict(given_run(text) for text in options.run)
    path = reproduce(experiment, scale, store, options.out, given, command_of(experiment.name, options))
    if path is not None:
        show(path)


def command_of(name: str, options: Options) -> str:
    """The command that gives the same again; folders of this machine are left out or shortened."""
    words = ["vma", "reproduce", name]
    words += ["--budget", f"{options.budget:g}"] if options.budget else []
    words += ["--updates", str(options.updates)] if options.updates else []
    words += ["--samples", str(options.samples)] if options.samples else []
    for text in options.run:
        key, _, folder = text.partition("=")
        words += ["--run", f"{key}={Path(folder).name}"]
    return shlex.join([*words, "--tiny"] if options.tiny else words)


def show(path: Path) -> None:
    """Print the findings of a collection."""
    record = read_collection(path)
    table = Table("", "paper", "ours", "updates", "hours", title=record.title, box=None, title_justify="left")
    for each in record.rows:
        table.add_row(each.what, each.paper, shown(each), str(each.updates or ""), f"{each.hours:.2f}")
    Console().print(table, highlight=False)
    print(f"Numbers: {path}\nFigure: {path.with_suffix('.png')}")


def report_command(
    results: Path = Path("results"), out: Path = Path("report.html"), markdown: Path = Path("docs/results.md")
) -> None:
    """Collect all experiments into one page that needs nothing else.

    Args:
        results: Folder of the collections, NAME.json.
        out: The HTML page.
        markdown: The same as a Markdown page.
    """
    for path in write_pages(results, out, markdown):
        print(path)
