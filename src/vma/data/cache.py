"""The user's cache: downloaded files, and decoded arrays that are quick to load the second time."""

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import platformdirs

from vma.data.arrays import read_npz
from vma.errors import InputError
from vma.files import at_home

LIMIT = 2**31


def cache_folder() -> Path:
    """The folder `VMA_CACHE` if set, else `variational-memory` in the user's cache."""
    return at_home(Path(os.environ.get("VMA_CACHE") or platformdirs.user_cache_path("variational-memory")))


def cached_arrays(key: str, build: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """The result of `build()`, from the cache if it was made before for the same `key`; else it is built and kept.

    `key` must name everything that the result depends on. A damaged entry is built again, and where the cache
    cannot be written, nothing is kept.
    """
    path = cache_folder() / "decoded" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npz"
    arrays = kept_arrays(path)
    if arrays is None:
        arrays = build()
        write_npz(path, arrays)
    return arrays


def kept_arrays(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays kept at `path`; None if they are absent or damaged."""
    try:
        return read_npz(path, LIMIT)
    except InputError:
        return None


def write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write `arrays` to `path`, completely or not at all; a folder that cannot be written is left alone."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    except OSError:
        return
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        temporary.replace(path)
    except OSError:  # a full disk costs only the copy: the arrays are still in hand
        pass
    finally:
        temporary.unlink(missing_ok=True)
