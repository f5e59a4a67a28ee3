"""Parts by name: those of this package, and those that other packages add."""

import pkgutil
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from vma.errors import InputError, unknown_name

Part = TypeVar("Part")


class Registry(Mapping[str, Part], Generic[Part]):
    """A mapping from names to parts, which others may add to without editing this package.

    An installed package adds a part by an entry point of the registry's group; a script adds one by `register`.
    Entry points are looked up when an unknown name is asked for, or when all names are listed; each is imported
    only when its part is asked for.

    Args:
        kind: What a part is called in an error, such as `similarity`.
        group: Group of entry points, such as `vma.similarities`.
        known: The package's own parts. A string `module:name` is imported when it is first asked for.
    """

    def __init__(self, kind: str, group: str, known: Mapping[str, Part | str]) -> None:
        self.kind, self.group = kind, group
        self.parts: dict[str, Part | str] = dict(known)
        self.entry_points: dict[str, EntryPoint] | None = None

    def register(self, name: str, part: Part) -> None:
        """Add a part; a name that is already taken is refused."""
        if name in self:
            raise InputError(f"There is a {self.kind} called {name!r} already: choose another name.")
        self.parts[name] = part

    def __getitem__(self, name: str) -> Part:
        if name not in self.parts:
            if name not in self.installed():
                raise unknown_name(self.kind, name, self)
            self.parts[name] = load_part(self.installed()[name])
        part = self.parts[name]
        if isinstance(part, str):
            part = self.parts[name] = pkgutil.resolve_name(part)
        return part

    def __contains__(self, name: object) -> bool:
        return name in self.parts or name in self.installed()

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self.parts, *self.installed())))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def get(self, name: str, default: Any = None) -> Any:
        """The part called `name`, or `default` where there is none."""
        if name not in self:
            return default
        return self[name]

    def installed(self) -> dict[str, EntryPoint]:
        """The entry points of the group, by name; one whose name is already taken is refused."""
        if self.entry_points is None:
            found: dict[str, EntryPoint] = {}
            for point in entry_points(group=self.group):
                if point.name in self.parts or point.name in found:
                    raise InputError(
                        f"There is a {self.kind} called {point.name!r} already, which the package "
                        f"{package_of(point)} offers too: rename its entry point, or uninstall it."
                    )
                found[point.name] = point
            self.entry_points = found
        return self.entry_points


def load_part(point: EntryPoint) -> Any:
    """What an entry point names; if it cannot be loaded, the error names its package and the cause."""
    try:
        return point.load()
    except Exception as error:  # whatever the other package's import raises
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(
            f"The entry point {point.name} = {point.value} of the package {package_of(point)} cannot be loaded "
            f"({cause}): repair the package, or uninstall it."
        ) from error


def package_of(point: EntryPoint) -> str:
    """Name and version of the package that an entry point belongs to."""
    return "(unknown)" if point.dist is None else f"{point.dist.name} {point.dist.version}"
