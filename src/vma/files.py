"""Writing that cannot be caught half-way: a reader sees the old file or the new one, never a piece."""

import os
import tempfile
from pathlib import Path

from vma.errors import InputError


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` beside `path`, flush it to the disk, and rename it into place."""
    handle, name = None, None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror or error}.") from None
    finally:
        if name is not None:
            Path(name).unlink(missing_ok=True)
