"""What images were recognised as, and how the answer is shown."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from vma.errors import InputError
from vma.fewshot.exhibits import Card, Exhibit, Row, Showable, png_bytes
from vma.fewshot.items import Item, counted
from vma.fewshot.tables import write_rows
from vma.files import at_home, write_atomically


@dataclass(frozen=True, repr=False)
class Recognition(Showable):
    """What one image was recognised as.

    >>> found = vma.load("omniglot-crisp").remember("my-symbols").recognise("new.png")[0]
    >>> isinstance(found, vma.fewshot.Recognition), list(found.probabilities)[0] == found.label
    (True, True)
    >>> index, share = found.items[0]  # the item that decided most

    Attributes:
        label: The most probable class.
        probabilities: Probability of every class, the most probable first. An item without a label is its own
            class, called `(item i)`.
        items: The items that decided, as (index, share), largest share first.
        image: The image as the model saw it.
        source: The name of the image: its file, or its place in the list.
        deciding: The items that decided, with their images, labels and files.
        novel: Whether it is of none of these classes, judged by where the model looks (see `vma.fewshot.glance`);
            None if that cannot be told, or was not asked.
        reason: Why `novel` is None; else empty.
    """

    label: str
    probabilities: dict[str, float]
    items: tuple[tuple[int, float], ...]
    image: Float[Tensor, "*image"] = field(compare=False)
    source: str = field(compare=False)
    deciding: tuple[Item, ...] = field(compare=False)
    novel: bool | None = None
    reason: str = ""

    @property
    def verdict(self) -> str:
        """The class, or that it is new, and which class is closest."""
        return f"new: closest to {self.label}" if self.novel else self.label

    def exhibit(self) -> Exhibit:
        """The image, and the items that decided."""
        return Exhibit(f"{self.source}: {self.sure()}", (self.row(),))

    def row(self, title: str = "") -> Row:
        """The image, and the items that decided with their shares."""
        shares = zip(self.deciding, self.items, strict=True)
        cards = [item.card(f"{item.name} {percent(share)}") for item, (_, share) in shares]
        return Row(title, (Card(self.image, "image", self.source), *cards))

    def numbers(self, classes: Iterable[str]) -> dict[str, Any]:
        """Its class, whether it is new, the probability of every class in this order, and the deciding items."""
        items = [
            {"item": item.number, "label": item.label, "share": share, "source": item.source}
            for item, (_, share) in zip(self.deciding, self.items, strict=True)
        ]
        probabilities = {label: self.probabilities[label] for label in classes if label in self.probabilities}
        return {
            "image": self.source, "label": self.label, "novel": self.novel, "probabilities": probabilities,
            "items": items,
        }  # fmt: skip

    def sure(self) -> str:
        """The verdict with the probability of its class."""
        return f"{self.verdict}, {percent(self.probabilities[self.label])}"

    def __repr__(self) -> str:
        numbers = ", ".join(str(number) for number, _ in self.items)
        return f"Recognition({self.sure()}; items {numbers})"


class Recognitions(list[Recognition], Showable):
    """A list with the recognition of every image; a notebook also shows the images.

    >>> found = vma.load("omniglot-crisp").remember("my-symbols").recognise(["new.png", "my-symbols/ka/1.png"])
    >>> isinstance(found, vma.fewshot.Recognitions), found[1].label
    (True, 'ka')
    """

    def exhibit(self) -> Exhibit:
        """A row for each image."""
        new = sum(bool(each.novel) for each in self)
        headline = f"{counted(len(self), 'image')} recognised" + (f", {new} of them new" if new else "")
        return Exhibit(headline, tuple(each.row(each.sure()) for each in self))

    def rows(self) -> list[dict[str, Any]]:
        """The numbers of every image, with all classes that one of them knows in order."""
        classes = sorted({label for each in self for label in each.probabilities})
        return [each.numbers(classes) for each in self]

    def save(self, path: str | Path) -> None:
        """Write a picture (.png), or all numbers (.csv or .json)."""
        target = at_home(Path(path))
        if target.suffix.lower() == ".png":
            write_atomically(target, png_bytes(self.picture()))
        elif target.suffix.lower() in (".csv", ".json"):
            write_rows(target, self.rows())
        else:
            raise InputError(f"{target} must end in .png, .csv or .json.")


def percent(share: float) -> str:
    """A share as a whole percentage."""
    return f"{100 * share:.0f} %"
