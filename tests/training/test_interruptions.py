"""A run whose reader or terminal goes away, or that is told to stop, loses nothing, and its exit code says why."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.small_runs import child, ending
from vma.cli import main
from vma.errors import Interrupted
from vma.runs.checkpoint import read_progress
from vma.runs.folder import Run
from vma.training.ending import interruptions
from vma.training.output import output_without_reader

WORDS = ["train", "glyphs-fewshot", "--model.maps", "8", "--threads", "1", "--picture-minutes", "0"]
WORDS += ["--episode.classes", "2", "--episode.targets", "1", "--episode.shots", "1", "--log-every", "1"]


def command(folder: Path, updates: int) -> subprocess.Popen:
    """`vma train` of a small run, with its lines in a pipe."""
    words = [sys.executable, "-m", "vma", *WORDS, "--updates", str(updates), "--folder", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)


def test_a_reader_that_goes_away_does_not_end_training(tmp_path: Path) -> None:
    """`vma train ... | head -1`."""
    with command(tmp_path / "run", updates=8) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"run" in process.stdout.readline()
        process.stdout.close()
        complaints = process.stderr.read().decode()
        assert (process.wait(300), complaints) == (0, "")
    assert read_progress(Run(tmp_path / "run").checkpoint_file).update == 8


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_run_that_is_told_to_stop_saves_and_says_so(number: int, tmp_path: Path) -> None:
    with command(tmp_path / "run", updates=100_000) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(b"update 2 "):
                break
        process.send_signal(number)
        said = process.stdout.read().decode()
        assert process.wait(300) == 128 + number
    assert "saved. Go on with: vma train --resume" in said
    run = Run(tmp_path / "run")
    assert read_progress(run.checkpoint_file).update == run.metrics()[-1]["update"] >= 2


def test_a_hang_up_that_is_ignored_stays_so() -> None:
    """As nohup wants it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptions() as caught:
            os.kill(os.getpid(), signal.SIGHUP)
            assert caught == []
    finally:
        signal.signal(signal.SIGHUP, before)


def print_into_a_closed_pipe() -> None:
    """Prints that fail; the process must end as if nothing had been."""
    reading, writing = os.pipe()
    os.dup2(writing, 1)
    os.close(writing)
    os.close(reading)
    sys.stdout = os.fdopen(1, "w")
    with output_without_reader():
        for _ in range(3):
            print("x" * 100_000, flush=True)
        assert not sys.stdout.isatty()


def test_nothing_is_said_to_nobody() -> None:
    assert ending(child(print_into_a_closed_pipe)) == 0


def test_the_exit_code_names_the_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*arguments: object) -> None:
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr("vma.cli.run", stopped)
    monkeypatch.setattr(sys, "argv", ["vma", "train"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 143
