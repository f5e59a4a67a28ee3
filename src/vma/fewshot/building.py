"""Filling a memory on disk from many files, piece by piece; an interrupted filling goes on where it stopped."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vma.errors import InputError
from vma.fewshot.images import folder_files
from vma.fewshot.large_memory import LargeMemory
from vma.large.indexing import Progress

PIECE = 2048  # images that are acknowledged at a time, at most
SECONDS = 20.0  # and about how long it may take to embed them
FIRST = 64  # images of the first piece, whose time decides how large the next ones are
ARRAYS = ".npy"


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


def fill(memory: LargeMemory, sources: Sequence[Source], label: str | None, progress: Progress) -> int:
    """Remember all sources that are not remembered yet; return how many were new. What is acknowledged stays."""
    done = memory.snapshot.all_sources()
    left = [source for source in sources if source.name not in done]
    first, piece = 0, FIRST
    while first < len(left):
        some, begun = left[first : first + piece], time.monotonic()
        memory.add(
            images_of(memory, some),
            [label or source.label for source in some],
            sources=[source.name for source in some],
        )
        first += len(some)
        progress(len(sources) - len(left) + first, len(sources))
        pace = len(some) / max(time.monotonic() - begun, 1e-3)
        piece = int(min(PIECE, max(FIRST, SECONDS * pace)))
    return len(left)


def images_of(memory: LargeMemory, some: Sequence[Source]) -> list[object]:
    """The images of some sources."""
    arrays = {source.path: open_array(source.path) for source in some if source.row is not None}
    return [source.path if source.row is None else arrays[source.path][source.row] for source in some]
