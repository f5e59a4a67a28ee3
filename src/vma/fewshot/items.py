"""An item of a memory as a small value: its image, its label, and the file that it came from."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from vma.fewshot.exhibits import Card, Exhibit, Row
from vma.fewshot.showable import Showable

Sources = tuple[str | None, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Item(Showable):
    """One item of a memory.

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
