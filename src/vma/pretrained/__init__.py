"""The models in the box: trained weights that come with the package, each with a card."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from vma.errors import InputError, unknown_name

FOLDER = Path(__file__).parent
DEFAULT = "omniglot-crisp"


@dataclass(frozen=True)
class Measured:
    """A number on a card.

    Attributes:
        what: What was measured, and on what.
        value: The number.
        error: Its standard error; None where `low` and `high` are given.
        low: The lower end of its 95 % interval.
        high: The upper end.
        unit: `nats`, `%`, or nothing.
        answer: The JSON file in the repository that it comes from.
    """

    what: str
    value: float
    error: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    answer: str = ""

    def __str__(self) -> str:
        """The number with its error, such as `47.0 ± 1.2 nats`."""
        scale, digits = (100, 1) if self.unit == "%" else (1, 1 if self.unit else 3)
        text = f"{scale * self.value:.{digits}f}"
        if self.error is not None:
            text += f" ± {scale * self.error:.{digits}f}"
        text += f" {self.unit}" if self.unit else ""
        if self.low is not None and self.high is not None:
            text += f" ({scale * self.low:.{digits}f} to {scale * self.high:.{digits}f})"
        return text


@dataclass(frozen=True)
class Card:
    """All that one should know about a model before using it.

    Attributes:
        name: What `vma.load` calls it.
        summary: One line.
        data: What it was trained on, which excludes the classes that it was measured on.
        licence: The licence of that data, and of the weights.
        preset: The preset that it was trained with.
        overrides: Where its settings differ from the preset's.
        updates: Updates awake.
        sleep_updates: Updates asleep.
        hours: Hours of one core that both took.
        seed: The seed of its training.
        good_for: What it does well.
        bad_for: What it does badly, or not at all.
        sha256: Checksum of the file with its weights.
        numbers: How well it does.
    """

    name: str
    summary: str
    data: str
    licence: str
    preset: str
    overrides: dict[str, Any]
    updates: int
    sleep_updates: int
    hours: float
    seed: int
    good_for: str
    bad_for: str
    sha256: str
    numbers: list[Measured] = field(default_factory=list)

    @property
    def command(self) -> str:
        """The command that trains it again."""
        words = [f"--{name.replace('_', '-')} {value}" for name, value in self.overrides.items()]
        return " ".join(["vma train", self.preset, *words])


def pretrained_names() -> list[str]:
    """The names of all models in the box."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def card_of(name: str) -> Card:
    """The card of a model.

    >>> from vma.pretrained import card_of
    >>> card_of("omniglot").seed
    0
    """
    if name not in pretrained_names():
        raise unknown_name("model in the box", name, pretrained_names())
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Card)


def weights_of(name: str) -> Path:
    """The file with a model's weights, compared with the checksum on its card."""
    card, file = card_of(name), FOLDER / f"{name}.safetensors"
    if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != card.sha256:
        raise InputError(
            f"The weights of the model {name!r} are missing or damaged: install the package again."
        )
    return file
