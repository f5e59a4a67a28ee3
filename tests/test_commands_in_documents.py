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
from tests.helpers.small_runs import fit, small
from tests.test_readme import symbols_and_a_model
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


def code_of(name: str) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", (ROOT / name).read_text(), re.M | re.S))


PAGES = [path for path in sorted((ROOT / "docs").glob("how-to/*.md")) if "```python" in path.read_text()]


NAMES = [*(f"docs/how-to/{path.name}" for path in PAGES), "docs/getting-started.md", "docs/export.md"]


@pytest.mark.parametrize("name", NAMES)
def test_the_code_of_a_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    symbols_and_a_model(tmp_path)
    torch.set_default_dtype(torch.float32)
    exec(compile(code_of(name), name, "exec"), {})


def test_the_code_of_the_page_on_evaluation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fit(small(updates=2), tmp_path / "runs/my-run")
    exec(compile(code_of("docs/evaluation.md"), "evaluation.md", "exec"), {})


# What takes minutes there takes a few updates here.
SHORTER = {
    '"minutes": 5, "model.maps": 16': '"updates": 4, "model.maps": 8, "picture_minutes": 0',
    "minutes=2": "updates=1",
    '"updates": 1000': '"updates": 2, "model.maps": 8, "picture_minutes": 0',
}


def test_the_code_of_the_page_on_training_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    symbols_and_a_model(tmp_path)
    torch.set_default_dtype(torch.float32)
    code = code_of("docs/training.md")
    for long, short in SHORTER.items():
        assert code.count(long) == 1
        code = code.replace(long, short)
    exec(compile(code, "training.md", "exec"), {})
