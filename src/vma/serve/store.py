"""The memory of a server: one file, written before a change is answered; changes come one after the other."""

import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from filelock import FileLock, Timeout

from vma.errors import InputError
from vma.fewshot import TrainedModel
from vma.files import write_atomically
from vma.serve.contents import Contents, read_contents
from vma.serve.errors import StaleError

STEPS = 100  # that can be taken back


@dataclass(frozen=True)
class Moment:
    """The memory at one moment.

    Attributes:
        version: Grows by one with each change, from a number that tells this server from any other.
        contents: What is in it.
        undo: What the last change was, if it can be taken back.
    """

    version: int
    contents: Contents
    undo: str | None


class Store:
    """The memory, its past, and the file that it is kept in.

    Reading is free: `now` is replaced as a whole. A change that cannot be written to the file does not happen.
    """

    def __init__(self, model: TrainedModel, path: Path) -> None:
        self.model, self.path = model, path
        self.changing = Lock()
        self.past: deque[tuple[Contents, str]] = deque(maxlen=STEPS)
        self.held = hold(path)
        try:
            contents = read_contents(model, path) if path.exists() else Contents()
        except InputError:
            self.close()
            raise
        self.now = Moment(secrets.randbelow(2**40), contents, None)

    def change(self, what: str, make: Callable[[Contents], Contents]) -> Moment:
        """Make the contents `make` of those there are; `what` names the change."""
        with self.changing:
            before = self.now.contents
            after = make(before)
            self.write(after)
            self.past.append((before, what))
            return self.turn_to(after)

    def undo(self, version: int) -> Moment:
        """Take back the last change, if the memory still is at `version`."""
        with self.changing:
            if version != self.now.version:
                raise StaleError("The memory has changed in the meantime: look at it again.")
            if not self.past:
                raise InputError("There is nothing to take back.")
            self.write(self.past[-1][0])
            return self.turn_to(self.past.pop()[0])

    def turn_to(self, contents: Contents) -> Moment:
        """The moment after a change."""
        self.now = Moment(self.now.version + 1, contents, self.past[-1][1] if self.past else None)
        return self.now

    def write(self, contents: Contents) -> None:
        """Keep `contents` in the file; an empty memory has none."""
        if contents.recollection is not None:
            write_atomically(self.path, contents.recollection.to_bytes())
            return
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise InputError(f"Cannot empty {self.path}: {error.strerror}.") from None

    def close(self) -> None:
        """Let another server have the file."""
        self.held.release()


def hold(path: Path) -> FileLock:
    """Keep other servers away from the file: two would overwrite each other's changes."""
    lock = FileLock(path.parent / f".{path.name}.lock", thread_local=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(
            f"{path} is open in another server: close that, or choose another --memory."
        ) from None
    except OSError as error:
        raise InputError(f"Cannot keep a memory in {path}: {error.strerror}.") from None
    return lock
