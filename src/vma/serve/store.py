"""The memory of a server: one file, written before a change is answered; changes come one after the other."""

import secrets
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from filelock import FileLock, Timeout

from vma.errors import InputError
from vma.fewshot import ImageMemory, TrainedModel
from vma.fewshot.images import ink_for
from vma.files import write_atomically
from vma.large import is_large
from vma.serve.errors import StaleError, UnknownCardError
from vma.serve.guard import ITEMS, LABEL
from vma.serve.messages import printable

UNNAMED = "unnamed"


@dataclass(frozen=True, eq=False)
class Contents:
    """Cards in order: their ids, and what the model remembers of them.

    Attributes:
        ids: One for each item, never used again for another.
        images: The items, names and keys; None where there are none.
    """

    ids: tuple[str, ...] = ()
    images: ImageMemory | None = None

    @staticmethod
    def of(images: ImageMemory | None) -> "Contents":
        """These items, with ids of their own."""
        return Contents(new_ids(len(images or ())), images)

    def known(self) -> ImageMemory:
        """What is remembered; an empty memory is refused."""
        if self.images is None:
            raise InputError("The memory is empty: remember a drawing first.")
        return self.images

    def number(self, card: str) -> int:
        """The place of a card."""
        try:
            return self.ids.index(card)
        except ValueError:
            raise UnknownCardError("This card is not in the memory any more.") from None

    def add(self, model: TrainedModel, images: Any, labels: Any) -> "Contents":
        """With `images` at the end."""
        ink = ink_for(model.model, images, None)
        if len(self.ids) + len(ink.images) > ITEMS:
            raise InputError(f"The memory holds {ITEMS} cards at most: delete some first.")
        grown = model.remember(ink, labels) if self.images is None else self.images.add(ink, labels)
        return Contents(self.ids + new_ids(len(ink.images)), grown)

    def forget(self, cards: Sequence[str]) -> "Contents":
        """Without these cards."""
        gone = {self.number(card) for card in cards}
        if len(gone) == len(self.ids):
            return Contents()
        kept = tuple(card for i, card in enumerate(self.ids) if i not in gone)
        return Contents(kept, self.known().forget(sorted(gone)))

    def rename(self, cards: Sequence[str], label: str) -> "Contents":
        """With another name for these cards."""
        return replace(self, images=self.known().relabel([self.number(card) for card in cards], label))


def new_ids(count: int) -> tuple[str, ...]:
    """Ids that nobody has used or can guess."""
    return tuple(secrets.token_hex(6) for _ in range(count))


def read_contents(model: TrainedModel, path: Path) -> Contents:
    """The memory in a file, with names as they may be; keys are computed anew, so that none is taken on trust."""
    if is_large(path):
        raise InputError(
            f"{path} is a memory on disk, which the page cannot show: ask it by 'vma recognise', 'score', "
            "'explain' and 'imagine' with --memory."
        )
    found = model.small_memory(path, None)
    if len(found) > ITEMS:
        raise InputError(f"{path} remembers {len(found)} images, and this page takes {ITEMS} at most.")
    labels = tuple(clean(label) for label in found.labels)
    return Contents.of(replace(found, labels=labels, keyed=model.model.remember(found.items)))


def parse_contents(model: TrainedModel, content: bytes) -> Contents:
    """The memory in the bytes of a file."""
    with tempfile.TemporaryDirectory(prefix="vma-") as folder:
        path = Path(folder) / "memory.safetensors"
        path.write_bytes(content)
        try:
            return read_contents(model, path)
        except InputError as error:
            raise InputError(str(error).replace(str(path), "The file")) from None


def clean(label: str | None) -> str:
    """A name from a file, cut and without what cannot be shown."""
    try:
        return printable((label or UNNAMED)[:LABEL].strip()) or UNNAMED
    except ValueError:
        return UNNAMED


STEPS = 100  # that can be taken back
PAST_CARDS = 20_000  # in the memory before each of these steps, all together: about 100 MB


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
            self.keep(before, what)
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

    def keep(self, contents: Contents, what: str) -> None:
        """Have something to take back; of large memories fewer steps are kept, but always the last one."""
        self.past.append((contents, what))
        while len(self.past) > 1 and sum(len(each.ids) for each, _ in self.past) > PAST_CARDS:
            self.past.popleft()

    def turn_to(self, contents: Contents) -> Moment:
        """The moment after a change."""
        self.now = Moment(self.now.version + 1, contents, self.past[-1][1] if self.past else None)
        return self.now

    def write(self, contents: Contents) -> None:
        """Keep `contents` in the file; an empty memory has none."""
        if contents.images is not None:
            write_atomically(self.path, contents.images.to_bytes(), private=True)
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
