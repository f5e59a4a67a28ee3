"""The items of a memory as small values, and how users name them: by their numbers and by labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from vma.checks import is_whole
from vma.errors import InputError
from vma.fewshot.exhibits import Card, Exhibit, Row, Showable
from vma.names import label_of

Sources = tuple[str | None, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Item(Showable):
    """One item of a memory.

    >>> item = vma.load("omniglot-crisp").remember("my-symbols")[0]
    >>> item
    Item(0: ga, 26×26, from my-symbols/ga/1.png)

    Attributes:
        number: Its place in the memory.
        image: 0 is empty, 1 is full ink.
        label: Its label; None if it has none.
        source: The file that it came from, as the user named it; None if it came from no file.
    """

    number: int
    image: Float[Tensor, "*image"]
    label: str | None = None
    source: str | None = None

    @property
    def name(self) -> str:
        """Its class; an item without a label is its own class, called `(item i)`."""
        return class_name(self.number, self.label)

    def card(self, caption: str | None = None) -> Card:
        """Its image with a caption, which by default is its name."""
        where = f"item {self.number}" + (f", {self.source}" if self.source else "")
        return Card(self.image, self.name if caption is None else caption, where)

    def exhibit(self) -> Exhibit:
        """The image, and what it is."""
        return Exhibit(str(self), (Row("", (self.card(),)),))

    def __repr__(self) -> str:
        size = "×".join(map(str, self.image.shape))
        where = f", from {self.source}" if self.source else ""
        return f"Item({self.number}: {self.label or 'no label'}, {size}{where})"


def class_name(number: int, label: str | None) -> str:
    """The class of an item; an item without a label is its own class, called `(item i)`."""
    return f"(item {number})" if label is None else label


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number and what it counts, such as `1 item` and `2 items`."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def listed(names: tuple[str, ...], most: int = 5) -> str:
    """The first few of some names."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


Labels = tuple[str | None, ...]


def as_labels(labels: Any, count: int) -> Labels:
    """`labels` as text, one for each of `count` images; a single label serves all of them."""
    if labels is None or isinstance(labels, str) or is_whole(labels):
        return (as_label(labels),) * count
    if isinstance(labels, np.ndarray | Tensor):
        labels = labels.tolist()
    if not isinstance(labels, Sequence):
        raise InputError(
            f"Labels must be a list with one label for each image, not a {type(labels).__name__}."
        )
    if len(labels) != count:
        raise InputError(f"There are {count} images but {len(labels)} labels: give one each.")
    return tuple(as_label(label) for label in labels)


def as_label(label: Any) -> str | None:
    """One label as text: words, or a whole number; None stays None."""
    if label is None:
        return None
    if (isinstance(label, str) or is_whole(label)) and label_of(str(label)):
        return label_of(str(label))
    raise InputError(f"A label must be text or a whole number, not {label!r}.")


def as_numbers(items: Any, count: int) -> list[int]:
    """One or more numbers of items, checked against a memory of `count` items."""
    values = np.atleast_1d(np.asarray(items)).tolist()
    if not values or any(type(i) is not int or not 0 <= i < count for i in values):
        raise InputError(f"Items are numbered from 0 to {count - 1}, so {items!r} names none.")
    return values


def as_number(item: Any, count: int) -> int:
    """The number of one item, checked."""
    first, *others = as_numbers(item, count)
    if others:
        raise InputError(f"Name one item, not {1 + len(others)}.")
    return first
