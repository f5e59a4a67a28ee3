"""How training ends: by itself, or by a signal, after which it still saves."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(frozen=True)
class Ending:
    """How training ended.

    Attributes:
        signal: Number of the signal that interrupted it; 0 if it came to its end.
    """

    signal: int = 0

    def __bool__(self) -> bool:
        return self.signal == 0


@contextmanager
def interruptions() -> Iterator[list[int]]:
    """Yield a list that receives the first signal: Ctrl-C, termination, or a closed terminal.

    A second signal ends the process. Hang-ups that are ignored, as under nohup, stay ignored.
    """
    caught: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield caught
        return

    def remember(number: int, frame: FrameType | None) -> None:
        caught.append(number)
        restore()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    try:
        for number in before:
            signal.signal(number, remember)
        yield caught
    finally:
        restore()
