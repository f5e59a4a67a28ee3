"""Threads that do not fight for a busy machine, and signs of life."""

import os

import pytest
import torch

from vma.quickstart import machine
from vma.quickstart.machine import Machine, told


@pytest.mark.parametrize(
    ("load", "own", "threads"),
    [(0.1, 0, 4), (1.2, 0, 3), (3.9, 0, 1), (17.0, 0, 1), (3.8, 4, 4), (6.0, 4, 2)],
)
def test_threads_are_as_many_as_free_cores(
    load: float, own: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "available_cores", lambda: 4)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert Machine.now(own).threads == threads
    assert Machine(4, 0.0, own).again() == Machine.now(own)


def test_a_system_that_does_not_tell_its_load_is_taken_for_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "getloadavg")
    assert Machine.now().threads == machine.available_cores()


def test_a_busy_machine_is_said_to_be_busy() -> None:
    assert "busy" in str(Machine(2, 1.6, 1))
    assert str(Machine(2, 0.2, 2)) == "2 threads on a machine of 2 cores with a load of 0.2"


def test_torch_is_given_so_many_threads() -> None:
    before = torch.get_num_threads()
    Machine(9, 0.0, 3).calm()
    assert torch.get_num_threads() == 3
    torch.set_num_threads(before)


def test_a_line_comes_every_few_seconds_and_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 1.0, 12.0, 12.0, 13.0, 14.0])
    monkeypatch.setattr("vma.quickstart.machine.time.monotonic", lambda: next(clock))
    show = told("work")
    for part in (1, 2, 3):
        show(part, 4)
    show(4, 4)
    assert capsys.readouterr().out.splitlines() == ["     work: 2 of 4", "     work: 4 of 4"]
