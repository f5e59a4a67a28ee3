"""The command `vma`: a table from command to plain function, imported only when it is called."""

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import tyro

from vma import __version__
from vma.errors import InputError, missing_extra, unknown_name


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        target: Where its function lives, as `module:function`.
        summary: One line on what it does.
        parses: Whether the function takes the raw arguments and parses them itself.
    """

    target: str
    summary: str
    parses: bool = False

    def load(self) -> Callable[..., Any]:
        """The function itself."""
        module, function = self.target.split(":")
        return getattr(importlib.import_module(module), function)


COMMANDS: dict[str, Command] = {
    "quickstart": Command(
        "vma.quickstart:quickstart", "two minutes of training, then a report on what it does"
    ),
    "train": Command(
        "vma.commands.training:train_command", "train a preset, or go on with a run", parses=True
    ),
    "sleep": Command(
        "vma.commands.training:sleep_command",
        "let a run dream, so that q(a|x) learns where to look",
        parses=True,
    ),
    "presets": Command(
        "vma.commands.training:presets_command", "every experiment, and what the paper reports"
    ),
    "runs": Command("vma.commands.training:runs_command", "the runs so far"),
    "evaluate": Command(
        "vma.commands.evaluation:evaluate_command", "likelihood, sweeps, classification, samples", parses=True
    ),
    "reproduce": Command(
        "vma.commands.reproduce:reproduce_command",
        "a figure, table or statement of the paper again",
        parses=True,
    ),
    "report": Command("vma.commands.reproduce:report_command", "all that was reproduced, on one page"),
    "imagine": Command("vma.commands.fewshot:imagine", "new images like those in a memory, as a picture"),
    "recognise": Command("vma.commands.fewshot:recognise", "which class of a memory each image is of"),
    "score": Command("vma.commands.fewshot:score", "log p(x|M) of images, and which of them are novel"),
    "explain": Command("vma.commands.fewshot:explain", "where the model looks for an image"),
    "serve": Command("vma.commands.serve:serve", "a local page to draw, remember, imagine and recognise"),
    "models": Command("vma.commands.fewshot:models", "the trained models in the box, and their cards"),
    "export": Command("vma.commands.fewshot:export", "write a run's model to one file"),
    "info": Command(
        "vma.commands.fewshot:info", "describe a saved model: its configuration, size and memory"
    ),
    "data list": Command(
        "vma.commands.data:list_datasets", "all datasets, whether they are here, how large they are"
    ),
    "data show": Command("vma.commands.data:show", "write a contact sheet of a dataset as PNG"),
    "data verify": Command("vma.commands.data:verify", "check counts, shapes and content hashes of datasets"),
    "data fetch": Command("vma.commands.data:fetch", "download a dataset to the cache"),
}
BENCHMARKS = (
    "Benchmarks are part of the repository, not of the installed package: 'git clone' it, and run there, for "
    "example, 'python -m benchmarks.speed step --maps 64'."
)


def usage(commands: dict[str, Command], program: str = "vma") -> str:
    """The text of `vma --help`, or of another program's."""
    width = max(map(len, commands))
    rows = [f"  {name:<{width}}  {command.summary}" for name, command in commands.items()]
    title = f"vma {__version__}: variational memory addressing in generative models"
    head = f"{title}\n\nusage: {program} COMMAND ..."
    return "\n".join([head, "", *rows, "", f"{program} COMMAND --help explains a command."])


def run(arguments: Sequence[str], commands: dict[str, Command] = COMMANDS, program: str = "vma") -> None:
    """Find the longest command that `arguments` start with, and call it with the rest."""
    for words in (2, 1):
        name = " ".join(arguments[:words])
        if name in commands:
            command, rest = commands[name], arguments[words:]
            if command.parses:
                command.load()(rest)
            else:
                tyro.cli(command.load(), prog=f"{program} {name}", args=rest)
            return
    if arguments[0] == "bench":
        raise InputError(BENCHMARKS)
    group = {name: command for name, command in commands.items() if name.startswith(f"{arguments[0]} ")}
    if group and set(arguments[1:]) <= {"-h", "--help"}:
        print(usage(group, program))
        return
    raise unknown_name("command", " ".join(arguments[:2]) if group else arguments[0], group or commands)


def fail(error: InputError, program: str) -> NoReturn:
    """Print what is wrong, and exit with code 2."""
    print(f"{program}: {error}", file=sys.stderr)
    sys.exit(2)


def main(commands: dict[str, Command] = COMMANDS, program: str = "vma") -> None:
    """Entry point: one clear sentence and exit code 2 for a user's mistake."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage(commands, program))
    elif arguments[0] == "--version":
        print(f"vma {__version__}")
    else:
        try:
            run(arguments, commands, program)
        except InputError as error:
            fail(error, program)
        except ModuleNotFoundError as error:
            if (missing := missing_extra(error)) is None:
                raise
            fail(missing, program)
        except BrokenPipeError:  # `vma ... | head`: the reader has stopped, and all files are already written
            sys.stderr.close()
        except KeyboardInterrupt:
            print(f"{program}: interrupted.", file=sys.stderr)
            sys.exit(130)
