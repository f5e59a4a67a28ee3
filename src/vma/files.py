"""Writing that cannot be caught half-way: a reader sees the old file or the new one, never a piece."""

import os
from contextlib import suppress
from pathlib import Path

from vma.errors import InputError

PARTIAL = ".partial"


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` beside `path`, flush it to the disk, and rename it into place."""
    partial = path.parent / f".{path.name}.{os.getpid()}{PARTIAL}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise InputError(f"Cannot write {path}: {error.strerror or error}.") from None


def remove_partial_files(folder: Path) -> None:
    """Delete what a killed process left half-written in `folder`; call it only where no other one writes."""
    for path in folder.glob(f".*{PARTIAL}"):
        path.unlink(missing_ok=True)
