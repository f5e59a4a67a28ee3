"""What is printed while a run trains; the run goes on even if its reader goes away."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any


class Output:
    """A stream that falls silent when its reader is gone: `vma train ... | head`, or a closed terminal."""

    def __init__(self, stream: Any) -> None:  # a text stream, or a stand-in for one
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write, if there still is a reader."""
        try:
            return self.stream.write(text)
        except OSError:
            self.fall_silent()
            return len(text)

    def flush(self) -> None:
        """Flush, if there still is a reader."""
        try:
            self.stream.flush()
        except OSError:
            self.fall_silent()

    def fall_silent(self) -> None:
        """Discard all further output, so that Python does not fail when it flushes at exit either."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)


@contextmanager
def output_without_reader() -> Iterator[None]:
    """A context in which printing never fails, with or without a reader."""
    output: Any = Output(sys.stdout)
    with redirect_stdout(output):
        yield
