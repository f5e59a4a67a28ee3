"""Every command that a document shows is one that `vma` takes, with its options; and how-to pages' code runs."""

import functools
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
import tyro

from tests.helpers.documents import DOCUMENTS, ROOT
from vma.cli import COMMANDS
from vma.commands import evaluation, reproduce, training
from vma.errors import InputError

COMMAND = re.compile(r"^\s*(?:torchrun [-\w. ]*-m )?(vma [^\n`]*)$", re.MULTILINE)
SHORTHAND = re.compile(r"\.\.\.|…| \| |COMMAND|TARGET")  # not a command, but a way to write several
STANDS_FOR = {"PRESET": "glyphs-fewshot", "NAME": "fig5a-classes"}


def commands_in(text: str) -> list[str]:
    """The commands of code blocks, with lines that go on joined, and without comments."""
    joined = re.sub(r"\\\n\s*", "", text)
    blocks = re.findall(
        r"(?:^(?: {4}.*\n)+)|(?:^```(?:bash|sh|text)?\n.*?^```$)", joined, re.MULTILINE | re.DOTALL
    )
    lines = [line for block in blocks for line in COMMAND.findall(block)]
    return [line.split("  #")[0].strip() for line in lines if not SHORTHAND.search(line.split("  #")[0])]


def take(arguments: Sequence[str]) -> None:
    """Parse a command as `vma` would, and do nothing."""
    name = next(name for words in (2, 1) if (name := " ".join(arguments[:words])) in COMMANDS)
    rest = [STANDS_FOR.get(word, word) for word in arguments[len(name.split()) :]]
    if COMMANDS[name].parses:
        COMMANDS[name].load()(rest)
    else:
        wanted = COMMANDS[name].load()
        nothing = functools.wraps(wanted)(lambda *_args, **_options: None)
        tyro.cli(nothing, args=rest)


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that parse by themselves stop once they have."""
    for module, names in (
        (training, ("start", "resume", "give_sleep")),
        (evaluation, ("evaluate_run",)),
        (reproduce, ("run", "list_experiments")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, lambda *_args, **_options: None)


# Those of docs/extending.md need its parts registered: tests/test_extending.py runs them as they stand.
PAGES_WITH_COMMANDS = [path for path in DOCUMENTS if path.name != "extending.md"]
LINES = sorted({line for path in PAGES_WITH_COMMANDS for line in commands_in(path.read_text())})


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("line", LINES)
def test_a_documented_command_is_one(line: str) -> None:
    words = shlex.split(line.split(" > ")[0], comments=True)[1:]
    if words[0].startswith("--"):
        assert words in (["--help"], ["--version"])
        return
    take(words)


@pytest.mark.usefixtures("idle")
def test_a_command_that_is_none_is_found() -> None:
    assert commands_in("    vma trian x\n\ntext\n\n    vma runs   # all\n") == ["vma trian x", "vma runs"]
    with pytest.raises(StopIteration):
        take(["trian", "x"])
    with pytest.raises((SystemExit, InputError)):
        take(["runs", "--no-such-option", "1"])
    with pytest.raises((SystemExit, InputError)):
        take(["train", "glyphs-fewshot", "--no-such-option", "1"])


PAGES = [path for path in sorted((ROOT / "docs").glob("how-to/*.md")) if "```python" in path.read_text()]


@pytest.mark.parametrize("path", [*PAGES, ROOT / "docs/getting-started.md"], ids=lambda path: path.name)
def test_the_code_of_a_page_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.test_readme import symbols_and_a_model

    monkeypatch.chdir(tmp_path)
    symbols_and_a_model(tmp_path)
    torch.set_default_dtype(torch.float32)
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL))
    exec(compile(code, str(path), "exec"), {})
