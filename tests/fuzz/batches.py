"""Many inputs in one process that has limits of memory and time, and another process that watches it."""

import ctypes
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import RawValue
from pathlib import Path
from typing import Any

import torch

from tests.fuzz.target import Target, made, outcome
from tests.helpers.memory_limits import MEGABYTE, resident

MEGABYTES = 2048  # that a batch may take beyond what there is when it begins
CPU_SECONDS = 20.0  # of processor time that an input may take
WAITED_SECONDS = 600.0  # that it may take in all, however busy the machine is
SHARED_MEMORY = Path("/dev/shm")


class TooSlowError(Exception):
    """An input that takes too long."""


class Counts(ctypes.Structure):
    """What a batch has done so far, in memory that it shares with the process that watches it."""

    _fields_ = (
        ("begun", ctypes.c_longlong),
        ("done", ctypes.c_longlong),
        ("answer", ctypes.c_longlong),
        ("sentence", ctypes.c_longlong),
        ("slowest", ctypes.c_double),
        ("megabytes", ctypes.c_double),
    )


@dataclass
class Found:
    """What came of a batch.

    Attributes:
        inputs: How many there were: the last one of a batch may have killed it.
        answer: How many were answered.
        sentence: How many were refused in a sentence.
        slowest: Seconds of processor time of the slowest.
        megabytes: The most memory that the batch had beyond what there was when it began.
        failures: Numbers and tracebacks of all others.
    """

    inputs: int = 0
    answer: int = 0
    sentence: int = 0
    slowest: float = 0.0
    megabytes: float = 0.0
    failures: list[dict[str, Any]] = field(default_factory=list)


def too_slow(*_: object) -> None:
    """Called when the time of an input is over."""
    raise TooSlowError


def peak() -> float:
    """The most memory that this process has had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def batch(pipe: Connection, counts: Counts, target: Target, seed: int, numbers: range, folder: Path) -> None:
    """In the child: inputs one after the other; each is announced before, and counted or told about after."""
    limit = resident() + MEGABYTES * MEGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGPROF, too_slow)
    torch.set_num_threads(1)  # those of the other process are not in this one, and would be waited for
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries of pictures talk a lot
    before = peak()
    for number in numbers:
        counts.begun += 1
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        try:
            kind = outcome(target, made(target, seed, number), folder)
            setattr(counts, kind, getattr(counts, kind) + 1)
        except BaseException:
            signal.setitimer(signal.ITIMER_PROF, 0)
            pipe.send((number, traceback.format_exc(limit=-6)))
        signal.setitimer(signal.ITIMER_PROF, 0)
        counts.slowest = max(counts.slowest, time.process_time() - began)
        counts.megabytes = peak() - before
        counts.done += 1


def run_batch(target: Target, seed: int, start: int, count: int) -> Found:
    """What came of so many inputs; one that kills its process is the last of its batch."""
    place = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
    folder, counts = Path(tempfile.mkdtemp(prefix="vma-fuzz-", dir=place)), RawValue(Counts)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    numbers = range(start, start + count)
    child = context.Process(target=batch, args=(theirs, counts, target, seed, numbers, folder))
    child.start()
    theirs.close()
    failures = [{"input": number, "trace": trace} for number, trace in told(ours, counts, child)]
    child.join()
    shutil.rmtree(folder, ignore_errors=True)
    if counts.begun > counts.done:
        trace = f"killed: exit code {child.exitcode}"
        failures.append({"input": start + counts.begun - 1, "trace": trace})
    elif counts.done < count:
        raise RuntimeError(f"{target.name} ended by itself: exit code {child.exitcode}")
    return Found(counts.begun, counts.answer, counts.sentence, counts.slowest, counts.megabytes, failures)


def told(pipe: Connection, counts: Counts, child: Any) -> list[tuple[int, str]]:
    """What the child tells of failures until it ends; it is killed where one input lasts too long."""
    found, seen, since = [], 0, time.monotonic()
    while True:
        try:
            if pipe.poll(1.0):
                found.append(pipe.recv())
        except EOFError:
            return found
        if counts.begun > seen:
            seen, since = counts.begun, time.monotonic()
        elif counts.begun > counts.done and time.monotonic() - since > WAITED_SECONDS:
            child.kill()
