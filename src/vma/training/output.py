"""What is printed while a run trains: its reader may go away, and the run goes on."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any


class Output:
    """A stream that falls silent when nobody reads it any more: `vma train ... | head`, or a closed terminal."""

    def __init__(self, stream: Any) -> None:  # a text stream, or what stands in for one
        self.stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write, if somebody reads."""
        try:
            return self.stream.write(text)
        except OSError:
            self.fall_silent()
            return len(text)

    def flush(self) -> None:
        """Flush, if somebody reads."""
        try:
            self.stream.flush()
        except OSError:
            self.fall_silent()

    def fall_silent(self) -> None:
        """Send what is still to come nowhere, so that Python does not trip over it at its end either."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)


@contextmanager
def output_without_reader() -> Iterator[None]:
    """While it is entered, printing never fails, whether somebody reads or not."""
    output: Any = Output(sys.stdout)
    with redirect_stdout(output):
        yield
