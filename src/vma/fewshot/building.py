"""Filling a memory on disk from many files, piece by piece; an interrupted filling goes on where it stopped."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from torch import Tensor

from vma.errors import InputError
from vma.fewshot.images import folder_files, ink_for
from vma.fewshot.items import as_labels
from vma.fewshot.large_memory import Embedded, LargeMemory
from vma.large.indexing import Progress

PIECE = 2048  # images that are acknowledged at a time, at most
SECONDS = 20.0  # and about how long it may take to embed them
FIRST = 64  # images of the first piece, whose time decides how large the next ones are
ARRAYS = ".npy"


@runtime_checkable
class Team(Protocol):
    """Processes that embed together, `vma.runs.processes.Processes`: of each piece, each makes a share."""

    @property
    def rank(self) -> int:
        """The number of this process."""

    @property
    def world(self) -> int:
        """How many there are."""

    @property
    def is_first(self) -> bool:
        """Whether this process writes."""

    def largest(self, value: float) -> float:
        """The largest value of any process."""

    def joined(self, share: Tensor) -> Tensor:
        """The shares of all, one after the other."""


@dataclass(frozen=True)
class Alone:
    """One process, which does all itself."""

    rank: int = 0
    world: int = 1
    is_first: bool = True

    def largest(self, value: float) -> float:
        """Its own."""
        return value

    def joined(self, share: Tensor) -> Tensor:
        """Its own, which is all."""
        return share


@dataclass(frozen=True)
class Source:
    """An image to be remembered.

    Attributes:
        name: The name of its origin in the memory.
        path: Its file.
        label: Its class, if its folder says so.
        row: Its number, if the file holds many images.
    """

    name: str
    path: Path
    label: str | None = None
    row: int | None = None


def sources_in(paths: Sequence[Path]) -> list[Source]:
    """All images in some folders, image files and arrays (.npy of shape [number, height, width])."""
    return [source for path in paths for source in sources_of(path.expanduser())]


def sources_of(path: Path) -> Iterator[Source]:
    """The images in a folder, in an array file, or in an image file."""
    if path.is_dir():
        for file in folder_files(path):
            yield Source(str(file), file, file.parent.name if file.parent != path else None)
    elif path.suffix.lower() == ARRAYS and path.is_file():
        for row in range(len(open_array(path))):
            yield Source(f"{path}#{row}", path, None, row)
    elif path.is_file():
        yield Source(str(path), path)
    else:
        raise InputError(f"There is no image file or folder {path}.")


def open_array(path: Path) -> np.ndarray:
    """The images in a .npy file, mapped into memory."""
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as an array: {error}.") from None
    if found.ndim < 3:
        raise InputError(f"{path} has the shape {list(found.shape)}: it must be [number, height, width].")
    return found


def fill(
    memory: LargeMemory,
    sources: Sequence[Source],
    label: str | None,
    progress: Progress,
    team: Team | None = None,
) -> int:
    """Remember all sources that are not remembered yet; return how many were new. What is acknowledged stays.

    The processes of a team, each of which calls this, have a share of every piece; the first of them writes.
    """
    team = team or Alone()
    done = memory.snapshot.all_sources()
    left = [source for source in sources if source.name not in done]
    first, piece = 0, FIRST
    while first < len(left):
        some, begun = left[first : first + piece], time.monotonic()
        levels, keys = embedded(memory, some, team)
        if team.is_first:
            labels = as_labels([label or source.label for source in some], len(some))
            memory.keep(levels, keys, labels, [source.name for source in some])
        first += len(some)
        progress(len(sources) - len(left) + first, len(sources))
        pace = len(some) / max(team.largest(time.monotonic() - begun), 1e-3)
        piece = int(min(PIECE, max(FIRST, SECONDS * pace)))
    return len(left)


def embedded(memory: LargeMemory, some: Sequence[Source], team: Team) -> Embedded:
    """The images of some sources and their keys, which the processes have made together."""
    size = -(-len(some) // team.world)
    start = min(team.rank * size, len(some) - 1)  # who has no share embeds the last image, for nothing
    share = list(some[start : start + size])
    share += share[-1:] * (size - len(share))
    ink = ink_for(memory.model, images_of(memory, share), memory.options).images
    levels, keys = memory.embedded(ink)
    return team.joined(levels)[: len(some)], team.joined(keys)[: len(some)]


def images_of(memory: LargeMemory, some: Sequence[Source]) -> list[object]:
    """The images of some sources."""
    arrays = {source.path: open_array(source.path) for source in some if source.row is not None}
    return [source.path if source.row is None else arrays[source.path][source.row] for source in some]
