"""The range of every number in settings: stated where the number is declared, and checked in one place."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, get_args, get_type_hints

from vma.errors import InputError


@dataclass(frozen=True)
class Within:
    """The range of a setting; only whole numbers belong to it if `low` is whole.

    Attributes:
        low: The smallest number.
        high: The largest number.
        above: Whether `low` itself is excluded.
        below: Whether `high` itself is excluded.
    """

    low: int | float
    high: int | float
    above: bool = False
    below: bool = False

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are allowed."""
        return isinstance(self.low, int)

    def holds(self, value: object) -> bool:
        """Whether `value` is a number in this range; NaN, infinities, True and False are not."""
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            return False
        number: Any = value
        enough = number > self.low if self.above else number >= self.low
        return bool(enough and (number < self.high if self.below else number <= self.high))

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        if not (self.above or self.below):
            return f"{kind} from {self.low} to {self.high}"
        least = f"above {self.low}" if self.above else f"from {self.low}"
        return f"{kind} {least} and {'below' if self.below else 'at most'} {self.high}"


MOST = 10**9  # of anything that is counted
Count = Annotated[int, Within(1, MOST)]  # at least one
Number = Annotated[int, Within(0, MOST)]  # possibly none
Size = Annotated[int, Within(1, 2**16)]  # of a layer
Pixels = Annotated[int, Within(1, 2**10)]  # of an image, down or across
Threads = Annotated[int, Within(0, 2**10)]
Seed = Annotated[int, Within(0, 2**62)]
Share = Annotated[float, Within(0.0, 1.0)]
ShareBelowOne = Annotated[float, Within(0.0, 1.0, below=True)]
Rate = Annotated[float, Within(0.0, 1e6, above=True)]
Weight = Annotated[float, Within(0.0, 1e9)]
Minutes = Annotated[float, Within(0.0, 1e8)]


def check_ranges(settings: Any, prefix: str = "") -> None:
    """Refuse a dataclass with a number outside its range; the error puts `prefix` before the setting's name."""
    for name, within in ranges_of(settings.__class__).items():
        for value in numbers_in(getattr(settings, name)):
            if not within.holds(value):
                raise InputError(f"{prefix}{name} must be {within}, not {shown(value)}.")


@cache
def ranges_of(kind: type) -> dict[str, Within]:
    """The range of each field of a dataclass that declares one, by name."""
    hints = get_type_hints(kind, include_extras=True)
    found = {field.name: range_in(hints[field.name]) for field in fields(kind)}
    return {name: within for name, within in found.items() if within is not None}


def range_in(hint: Any) -> Within | None:
    """The range in a type such as `Annotated[int, Within(0, 9)] | None`, at any depth."""
    if isinstance(hint, Within):
        return hint
    parts = [*get_args(hint), *getattr(hint, "__metadata__", ())]
    return next((within for part in parts if (within := range_in(part))), None)


def numbers_in(value: Any) -> Iterator[Any]:
    """The numbers in a setting, which may also be a tuple of them, or None."""
    if isinstance(value, tuple | list):
        for each in value:
            yield from numbers_in(each)
    elif value is not None:
        yield value


def shown(value: object) -> str:
    """A value as text for an error, cut if it is long."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return "one of more than 30 digits"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
