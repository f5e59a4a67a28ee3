"""How busy the machine is, how many threads it has room for, and signs of progress while it works."""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

PATIENCE = 10.0  # seconds between two lines, where lines cannot be overwritten


@dataclass(frozen=True)
class Machine:
    """The part of a machine that is free.

    Attributes:
        cores: Cores that this process may use.
        load: Threads that wanted to run in the last minute, on average, without those of this process.
        threads: Threads for this process, at most as many as free cores; more would wait for one another.
    """

    cores: int
    load: float
    threads: int

    @classmethod
    def now(cls, own: int = 0) -> "Machine":
        """The machine as it is.

        Args:
            own: Threads of this process that were running during the last minute.
        """
        cores, load = available_cores(), max(0.0, load_average() - own)
        return cls(cores, load, max(1, min(round(cores - load), cores)))

    def again(self) -> "Machine":
        """The machine as it is now, after this process has run `threads` threads."""
        return Machine.now(own=self.threads)

    def calm(self) -> None:
        """Limit torch to that many threads."""
        torch.set_num_threads(self.threads)

    def __str__(self) -> str:
        """One line."""
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        busy = ", which is busy: this will take longer" if self.load > self.cores / 2 else ""
        return f"{threads} on a machine of {self.cores} cores with a load of {self.load:.1f}{busy}"


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_average() -> float:
    """The load of the last minute; 0 if the system does not report it."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return 0.0


def told(what: str) -> Callable[[int, int], None]:
    """A function that shows how many parts of some work are done: in place, or as a line every few seconds."""
    last = time.monotonic()

    def show(done: int, parts: int) -> None:
        nonlocal last
        if sys.stdout.isatty():
            print(f"\r     {what}: {done} of {parts}", end="\n" if done == parts else "", flush=True)
        elif done == parts or time.monotonic() - last > PATIENCE:
            print(f"     {what}: {done} of {parts}", flush=True)
            last = time.monotonic()

    return show
