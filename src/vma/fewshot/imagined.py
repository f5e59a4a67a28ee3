"""What was imagined: to be looked at, saved as one picture, or saved as a data set with a folder per class."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.errors import InputError
from vma.fewshot.exhibits import Card, Exhibit, Row, Showable, on_white, png_bytes
from vma.fewshot.items import Item, counted, listed
from vma.files import at_home, write_atomically, write_folder_atomically

UNSAFE = re.compile(r'[%/\\:*?"<>|\x00-\x1f]|^\.')  # never in a folder's name, as a dot at its start
BESIDE = 3  # items of memory shown before what was imagined from them


@dataclass(frozen=True, eq=False, repr=False)
class Imagined(Showable):
    """Draws from p(x|M).

    >>> drawn = vma.load("omniglot-crisp").remember("my-symbols").imagine(8, seed=1)
    >>> isinstance(drawn, vma.fewshot.Imagined), drawn.items.shape  # which item each came from
    (True, torch.Size([8]))
    >>> drawn.picture().save("imagined.png")

    Attributes:
        items: The memory item that each image came from.
        images: The images.
        probabilities: The probability of ink at every pixel, from which the images were drawn; for grey levels and
            colours, the mean of each pixel.
        shown: What a figure should show: the probabilities if pixels are independent, otherwise the images.
        origins: The items that the images came from, by their numbers.
    """

    items: Int[Tensor, "samples"]
    images: Float[Tensor, "samples *image"]
    probabilities: Float[Tensor, "samples *image"]
    shown: Float[Tensor, "samples *image"]
    origins: Mapping[int, Item]

    def __len__(self) -> int:
        return len(self.items)

    @property
    def names(self) -> tuple[str, ...]:
        """The class of each image: that of the item it came from."""
        return tuple(self.origins[item].name for item in self.items.tolist())

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, each once, in order of appearance."""
        return tuple(dict.fromkeys(self.names))

    def save(self, path: str | Path, *, binary: bool = False) -> None:
        """Write one picture, `name.png`, or a data set: `FOLDER/class/0001.png` and so on.

        Args:
            path: A name ending in .png, or a folder that is empty or does not exist yet. Characters that cannot be
                in a folder's name are written as in a web address: `a/b` becomes `a%2Fb`.
            binary: Write images as they were drawn, instead of the probability of ink.
        """
        target = at_home(Path(path))
        if target.suffix.lower() == ".png":
            write_atomically(target, png_bytes(self.picture()))
        elif target.suffix:
            raise InputError(f"{target} must end in .png, or be the name of a folder.")
        else:
            write_folder_atomically(target, self.files(binary))

    def files(self, binary: bool) -> dict[str, bytes]:
        """A PNG file for each image, dark ink on white, by its path in a folder of classes."""
        pixels, counts, files = self.images if binary else self.shown, dict.fromkeys(self.names, 0), {}
        for name, image in zip(self.names, pixels, strict=True):
            counts[name] += 1
            files[f"{folder_name(name)}/{counts[name]:04d}.png"] = png_bytes(on_white(image))
        return files

    def exhibit(self) -> Exhibit:
        """A row for each class: the items of memory, then what was imagined from them."""
        return Exhibit(str(self), tuple(self.row(name) for name in self.classes))

    def row(self, name: str) -> Row:
        """The row of one class."""
        origins = [item for item in self.origins.values() if item.name == name][:BESIDE]
        pairs = zip(self.items.tolist(), self.names, self.shown, strict=True)
        drawn = [Card(image, "", f"from item {item}") for item, own, image in pairs if own == name]
        return Row(name, (*(item.card("memory") for item in origins), *drawn))

    def __repr__(self) -> str:
        size = "×".join(map(str, self.images.shape[1:]))
        items = counted(len(self.origins), "item")
        return f"Imagined({counted(len(self), 'image')} of {listed(self.classes)}, from {items}; {size})"


def joined(parts: list[Imagined]) -> Imagined:
    """All parts in one, one after another."""
    return Imagined(
        torch.cat([each.items for each in parts]),
        torch.cat([each.images for each in parts]),
        torch.cat([each.probabilities for each in parts]),
        torch.cat([each.shown for each in parts]),
        {number: item for each in parts for number, item in each.origins.items()},
    )


def folder_name(name: str) -> str:
    """A folder's name for a class; different classes get different folders."""
    return UNSAFE.sub(lambda letter: f"%{ord(letter[0]):02X}", name)
