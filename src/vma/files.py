"""Reading files that others made, and writing our own completely or not at all."""

import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from vma.errors import InputError

PARTIAL = ".partial"
STALE_SECONDS = 3600.0  # older partial files are deleted, unless the process that wrote them still runs
ROOT = 0
OUR_MISTAKES = (NameError, AttributeError, ImportError, AssertionError)  # no content of a file is to blame


@contextmanager
def from_outside(complaint: str) -> Iterator[None]:
    """Turn whatever a parser raises into an `InputError` that says `complaint` and then the parser's message.

    Put nothing but the parsing inside, so that no mistake of our own is taken for a damaged file.
    """
    try:
        yield
    except (InputError, *OUR_MISTAKES):
        raise
    except Exception as error:  # any kind: nobody knows beforehand what a parser raises on a damaged file
        raise InputError(f"{complaint}: {said(error)}.") from error


def said(error: Exception) -> str:
    """The message of an error, shortened to a few words on one line."""
    if isinstance(error, MemoryError | RecursionError):
        return "it is too large, or too deep"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    line = " ".join(text[:400].split())
    return (line if len(line) <= 200 else f"{line[:200]}…").rstrip(".")


def at_home(path: Path) -> Path:
    """The path with a leading `~` or `~name` replaced by that home folder."""
    with from_outside(f"{path} names the home of somebody who is not known here"):
        return path.expanduser()


def check_ordinary(path: Path, noun: str) -> None:
    """Refuse a path that is missing or not an ordinary file: a pipe would wait, and a device might never end."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a name with a zero byte
        raise InputError(f"There is no {noun} {path}.") from None
    except OSError as error:
        raise InputError(f"The {noun} {path} cannot be read: {said(error)}.") from None
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is not an ordinary file, so it is no {noun}: name another.")


def read_ordinary(path: Path, noun: str) -> bytes:
    """The content of an ordinary file."""
    check_ordinary(path, noun)
    with from_outside(f"The {noun} {path} cannot be read"):
        return path.read_bytes()


def write_atomically(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write `content` beside `path`, flush it to the disk, and rename it into place.

    A file that is replaced keeps its mode and, where permitted, its owner. If `private`, only its owner may read a
    new one. If `path` is a link, the file that it leads to is replaced.
    """
    with written_beside(path, content, private) as (partial, place):
        partial.replace(place)


def write_if_absent(path: Path, content: bytes) -> bool:
    """Write `content` to `path` unless a file is there, even one just made; return whether it was written."""
    with written_beside(path, content) as (partial, place):
        try:
            os.link(partial, place)
        except FileExistsError:
            return False
        return True


@contextmanager
def written_beside(path: Path, content: bytes, private: bool = False) -> Iterator[tuple[Path, Path]]:
    """Yield a complete file beside `path` and the place where it belongs; the folder is flushed afterwards."""
    try:
        path = destination(path)
        make_folder(path.parent)
        partial = path.parent / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}{PARTIAL}"
        try:
            write_new(partial, content, like=path, private=private)
            yield partial, path
            flush_folder(path.parent)
        finally:
            with suppress(OSError):
                partial.unlink()
        remove_stale_files(path)
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror or error}.") from None


def destination(path: Path) -> Path:
    """Where to write for `path`, with links followed; refuse a link of another user, and what is not a file."""
    if path.is_symlink():
        if path.lstat().st_uid not in (os.geteuid(), ROOT):
            raise InputError(f"{path} is a link that another user has made: name the file itself.")
        path = path.resolve()
    if path.exists() and not path.is_file():
        what = "a folder" if path.is_dir() else "a device or a pipe"
        raise InputError(f"Cannot write {path}: it is {what}, not a file.")
    return path


def write_new(path: Path, content: bytes, like: Path, private: bool) -> None:
    """Write a new file, with the mode and owner of `like` if that exists, and flush it to the disk."""
    mode = 0o600 if private or like.exists() else 0o666
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    with os.fdopen(handle, "wb") as file:
        if like.exists():
            keep_manners(file.fileno(), like.stat())
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def keep_manners(handle: int, old: os.stat_result) -> None:
    """Give an open file the owner and mode of another; if its owner may not be changed, it stays ours."""
    new = os.fstat(handle)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(PermissionError):
            os.fchown(handle, old.st_uid, old.st_gid)
    os.fchmod(handle, stat.S_IMODE(old.st_mode))


def make_folder(folder: Path) -> None:
    """Make a folder and any missing ones above it, and flush their names to the disk."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        flush_folder(folder.parent)


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk: without it, a power cut may undo a rename that was acknowledged."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # some systems, and some folders, cannot be opened like this
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # from file systems that cannot flush a folder
            raise
    finally:
        os.close(handle)


def remove_stale_files(path: Path) -> None:
    """Delete the partial files for `path` that killed processes left behind."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.(\d+)(\.[0-9a-f]+)?{re.escape(PARTIAL)}")
    for other in path.parent.iterdir():
        if (found := pattern.fullmatch(other.name)) and is_stale(other, int(found[1])):
            with suppress(OSError):
                other.unlink()


def is_stale(path: Path, process: int) -> bool:
    """Whether a partial file is old and the process that wrote it no longer runs on this machine."""
    try:
        if time.time() - path.lstat().st_mtime < STALE_SECONDS:
            return False
        os.kill(process, 0)
    except (FileNotFoundError, ProcessLookupError, OverflowError):
        return True
    except OSError:  # the process exists, but belongs to another user
        return False
    return False


def remove_partial_files(folder: Path) -> None:
    """Delete the partial files of killed processes in `folder`; call it only where no other process writes."""
    for path in folder.glob(f".*{PARTIAL}"):
        path.unlink(missing_ok=True)


def write_folder_atomically(path: Path, files: Mapping[str, bytes]) -> None:
    """Write `files`, by their paths inside it, to a new folder `path`, which appears only once it is complete."""
    check_new_folder(path)
    path = path.absolute()
    partial = path.parent / f".{path.name}.{os.getpid()}{PARTIAL}"
    try:
        for place, content in files.items():
            (partial / place).parent.mkdir(parents=True, exist_ok=True)
            (partial / place).write_bytes(content)
        if path.exists():
            path.rmdir()
        partial.replace(path)
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_new_folder(path: Path) -> None:
    """Refuse to write into a folder that holds something already."""
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        what = "is not empty" if path.is_dir() else "is a file"
        raise InputError(f"{path} {what}: name a folder that is empty or not there yet.")
