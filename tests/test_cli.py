"""The command as a user meets it."""

import subprocess
import sys
from contextlib import suppress

import pytest

from vma import InputError, __version__
from vma.cli import COMMANDS, main, run


def vma(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from vma.cli import main; main()", *arguments], capture_output=True, text=True
    )


@pytest.mark.parametrize("word", ["--help", "help"])
def test_help_lists_every_command(word: str) -> None:
    result = vma(word)
    assert result.returncode == 0
    for name in COMMANDS:
        assert f"\n  {name} " in result.stdout


def test_version() -> None:
    assert vma("--version").stdout == f"vma {__version__}\n"


def test_a_mistake_is_one_sentence_on_stderr_and_exit_code_2() -> None:
    result = vma("info", "nowhere.safetensors")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "vma: There is no model file nowhere.safetensors.\n"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermissionError(13, "Permission denied", "secret.png"), "vma: secret.png: Permission denied.\n"),
        (MemoryError(), "vma: This needs more memory than there is: ask for less at a time"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory"),
            "vma: This needs more memory than there is",
        ),
    ],
)
def test_what_the_machine_refuses_is_a_sentence(
    error: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*arguments: object) -> None:
        raise error

    monkeypatch.setattr("vma.cli.run", refused)
    monkeypatch.setattr(sys, "argv", ["vma", "runs"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith(sentence)


def test_a_mistake_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr("vma.cli.run", broken)
    monkeypatch.setattr(sys, "argv", ["vma", "runs"])
    with pytest.raises(RuntimeError, match="a mistake"):
        main()


def test_an_unknown_command_names_the_nearest() -> None:
    with pytest.raises(InputError, match="Did you mean 'info'"):
        run(["inf"])


@pytest.mark.parametrize("arguments", [["data"], ["data", "--help"]])
def test_a_group_of_commands_lists_its_own(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run(arguments)
    shown = [line.split("  ")[1] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert shown == [name for name in COMMANDS if name.startswith(arguments[0])]


def test_an_unknown_command_of_a_group_is_told_that_group() -> None:
    with pytest.raises(
        InputError, match=r"Unknown command 'data sho': choose one of data list, .*'data show'"
    ):
        run(["data", "sho"])


@pytest.mark.parametrize("arguments", [["bench"], ["bench", "--help"], ["bench", "step", "--maps", "64"]])
def test_benchmarks_are_in_the_repository(arguments: list[str]) -> None:
    with pytest.raises(InputError, match=r"git clone.*python -m benchmarks\.speed step --maps 64"):
        run(arguments)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with suppress(SystemExit):
        run([*name.split(), "--help"])
    assert f"vma {name}" in capsys.readouterr().out
