"""Running a function in a process of its own that may take so much memory and no more."""

import multiprocessing
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEGABYTE = 2**20


def resident() -> int:
    """Bytes of address space that this process has taken by now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def call_within(megabytes: int, function: Callable[..., Any], *args: Any) -> Any:
    """What `function(*args)` ends in, as a pair of kind and text, with so much memory beyond what there is."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=answer_within, args=(theirs, megabytes, function, args))
    child.start()
    theirs.close()
    try:
        return ours.recv()
    except EOFError:
        return "killed", str(child.exitcode)
    finally:
        child.join()


def answer_within(pipe: Any, megabytes: int, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """In the child: set the limit, call, and send what came out."""
    limit = resident() + megabytes * MEGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        function(*args)
        pipe.send(("answer", ""))
    except BaseException as error:
        pipe.send((type(error).__name__, str(error)))
