"""What is in memory at one moment: a value; every change gives another one."""

import secrets
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vma.errors import InputError
from vma.fewshot import ImageMemory, TrainedModel
from vma.serve.errors import UnknownCardError
from vma.serve.limits import ITEMS, LABEL
from vma.serve.messages import printable

UNNAMED = "unnamed"


@dataclass(frozen=True, eq=False)
class Contents:
    """Cards in order: their ids, and what the model remembers of them.

    Attributes:
        ids: One for each item, never used again for another.
        recollection: The items, names and keys; None where there are none.
    """

    ids: tuple[str, ...] = ()
    recollection: ImageMemory | None = None

    @staticmethod
    def of(recollection: ImageMemory | None) -> "Contents":
        """These items, with ids of their own."""
        return Contents(new_ids(len(recollection or ())), recollection)

    def known(self) -> ImageMemory:
        """What is remembered, where something has to be."""
        if self.recollection is None:
            raise InputError("The memory is empty: remember a drawing first.")
        return self.recollection

    def number(self, card: str) -> int:
        """The place of a card."""
        try:
            return self.ids.index(card)
        except ValueError:
            raise UnknownCardError("This card is not in the memory any more.") from None

    def add(self, model: TrainedModel, images: Any, labels: Any) -> "Contents":
        """With `images` at the end."""
        if len(self.ids) + len(images) > ITEMS:
            raise InputError(f"The memory holds {ITEMS} cards at most: delete some first.")
        grown = (
            model.remember(images, labels)
            if self.recollection is None
            else self.recollection.add(images, labels)
        )
        return Contents(self.ids + new_ids(len(images)), grown)

    def forget(self, cards: Sequence[str]) -> "Contents":
        """Without these cards."""
        gone = {self.number(card) for card in cards}
        if len(gone) == len(self.ids):
            return Contents()
        kept = tuple(card for i, card in enumerate(self.ids) if i not in gone)
        return Contents(kept, self.known().forget(sorted(gone)))

    def rename(self, cards: Sequence[str], label: str) -> "Contents":
        """With another name for these cards."""
        return replace(self, recollection=self.known().relabel([self.number(card) for card in cards], label))


def new_ids(count: int) -> tuple[str, ...]:
    """Ids that nobody has used or can guess."""
    return tuple(secrets.token_hex(6) for _ in range(count))


def read_contents(model: TrainedModel, path: Path) -> Contents:
    """The memory in a file, with names as they may be; keys are computed anew, so that none is taken on trust."""
    found = model.open_memory(path)
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
