"""The command `vma`: a table from commands to plain functions, which are imported only when called."""

import importlib
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import tyro

from vma import __version__
from vma.errors import InputError, Interrupted, missing_extra, unknown_name
from vma.names import plain


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
        "vma.commands.presets:presets_command", "every experiment: how long it takes, what the paper reports"
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
    "memory build": Command("vma.commands.memory:build", "make a memory on disk of many images, or go on"),
    "memory add": Command("vma.commands.memory:add", "add images to a memory on disk"),
    "memory forget": Command("vma.commands.memory:forget", "forget some items of a memory on disk"),
    "memory relabel": Command("vma.commands.memory:relabel", "give some of its items another label"),
    "memory index": Command("vma.commands.memory:index", "search it by another index from now on"),
    "memory sharpen": Command("vma.commands.memory:sharpen", "fit how sharply it is read to what is in it"),
    "memory info": Command("vma.commands.memory:info", "describe a memory on disk"),
    "memory verify": Command("vma.commands.memory:verify", "check its bytes, probabilities and index"),
    "memory rekey": Command("vma.commands.memory:rekey_command", "make its keys anew with another model"),
    "models": Command("vma.commands.fewshot:models", "the trained models in the box, and their cards"),
    "export": Command(
        "vma.commands.export:export", "write a run's model to a file, for the Hugging Face hub, or as ONNX"
    ),
    "info": Command(
        "vma.commands.info:info", "describe a model: its data, updates, likelihood and configuration"
    ),
    "data list": Command(
        "vma.commands.data:list_datasets", "all datasets, whether they are here, how large they are"
    ),
    "data show": Command("vma.commands.data:show", "write a contact sheet of a dataset as PNG"),
    "data verify": Command("vma.commands.data:verify", "check counts, shapes and content hashes of datasets"),
    "data fetch": Command("vma.commands.data:fetch", "download a dataset to the cache"),
}
TOO_LARGE = InputError(
    "This needs more memory than there is: ask for less at a time, or for smaller numbers."
)
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
    print(f"{program}: {plain(str(error))}", file=sys.stderr)
    sys.exit(2)


def main(commands: dict[str, Command] = COMMANDS, program: str = "vma") -> None:
    """Entry point: one clear sentence and exit code 2 for a user's mistake."""
    arguments = sys.argv[1:]
    if isinstance(sys.stdout, io.TextIOWrapper):  # names in any encoding can be shown by any terminal
        sys.stdout.reconfigure(errors="backslashreplace")
    if not arguments or arguments[0] in ("-h", "--help", "help"):
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
        except MemoryError:
            fail(TOO_LARGE, program)
        except BrokenPipeError:  # `vma ... | head`: the reader has stopped, and all files are already written
            sys.stderr.close()
        except OSError as error:  # a user's file that cannot be read or written, wherever it was opened
            fail(InputError(f"{error.filename or 'A file'}: {error.strerror or error}."), program)
        except RuntimeError as error:
            if "allocate memory" not in str(error):  # torch's message when there is not enough
                raise
            fail(TOO_LARGE, program)
        except Interrupted as interruption:  # the run has been saved and has said so
            sys.exit(128 + interruption.signal)
        except KeyboardInterrupt:
            print(f"{program}: interrupted.", file=sys.stderr)
            sys.exit(130)
