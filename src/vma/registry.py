"""What can be chosen by name, open to what installed packages and Python code add."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from vma.errors import InputError, unknown_name

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Values by name: those known from the start, those registered, and those that installed packages offer.

    A package offers a value by an entry point. Entry points are looked up when the names are listed or one is
    asked for that is not known, and each is imported when its value is asked for.

    Args:
        kind: What the names are names of, for error messages: `dataset`, say.
        group: The group of entry points: `vma.datasets`, say.
        known: The values known from the start.
    """

    def __init__(self, kind: str, group: str, known: dict[str, T]) -> None:
        self.kind, self.group = kind, group
        self.known, self.loaded = dict(known), dict[str, T]()

    def __getitem__(self, name: str) -> T:
        if name in self.known:
            return self.known[name]
        if name not in self.offered:
            raise unknown_name(self.kind, name, self)
        if name not in self.loaded:
            self.loaded[name] = load_offered(self.offered[name])
        return self.loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.known, *self.offered])

    def __len__(self) -> int:
        return len(self.known) + len(self.offered)

    def __contains__(self, name: object) -> bool:
        return name in self.known or name in self.offered

    def get(self, name: str, default: Any = None) -> Any:
        """The value of `name`, or `default` where there is none."""
        if name not in self:
            return default
        return self[name]

    def register(self, name: str, value: T) -> None:
        """Add a value for this process under a name that is not taken."""
        if name in self:
            raise InputError(f"The {self.kind} {name!r} exists already: choose another name.")
        self.known[name] = value

    @cached_property
    def offered(self) -> dict[str, EntryPoint]:
        """The entry points of the group by name; a name that is taken is refused."""
        found: dict[str, EntryPoint] = {}
        for point in entry_points(group=self.group):
            if point.name in self.known or point.name in found:
                raise InputError(
                    f"The package {package_of(point)} offers the {self.kind} {point.name!r}, which exists "
                    "already: rename its entry point, or uninstall it."
                )
            found[point.name] = point
        return found


def load_offered(point: EntryPoint) -> Any:
    """The value that an entry point names."""
    try:
        return point.load()
    except Exception as error:
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(
            f"The entry point {point.name} = {point.value} of the package {package_of(point)} cannot be loaded "
            f"({cause}): repair the package, or uninstall it."
        ) from error


def package_of(point: EntryPoint) -> str:
    """Name and version of the package that an entry point belongs to."""
    return "(unknown)" if point.dist is None else f"{point.dist.name} {point.dist.version}"
