"""Where files come from: the user's folder, the cache, or a download that resumes and is verified."""

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from vma.data.cache import cache_folder
from vma.errors import InputError
from vma.files import at_home

CHUNK = 1 << 13  # at most so much is lost when a connection breaks
RETRIED = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.HTTPError,
)


@dataclass(frozen=True)
class Source:
    """A file that a dataset is read from.

    Attributes:
        name: Its name in the cache.
        url: Where it is downloaded from.
        size: Size of the download in bytes; None if unknown.
        sha256: Checksum of the download; None if only `git_blob` is known.
        git_blob: Git's id of the download.
        aliases: Other names that a user's copy may have; its content is verified after reading.
    """

    name: str
    url: str
    size: int | None
    sha256: str | None = None
    git_blob: str | None = None
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names under which the file is looked for."""
        return (self.name, *self.aliases)


@dataclass(frozen=True)
class ResumingDownloader:
    """Downloads a URL to a file; it is called as pooch calls a downloader.

    Attributes:
        attempts: How often to connect before giving up; what has arrived is kept from one attempt to the next.
        pause: Seconds before the second attempt, doubled before each later one.
        timeout: Seconds without a byte after which a connection counts as broken.
        progress: Whether to draw a progress bar on standard error.
    """

    attempts: int = 4
    pause: float = 1.0
    timeout: float = 20.0
    progress: bool = True

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        """Download `url` to `output_file`, raising requests' error after the last attempt."""
        path = Path(output_file)
        path.write_bytes(b"")
        with progress_bar(self.progress) as bar:
            task = bar.add_task(url.rsplit("/", 1)[-1], total=None)
            for attempt in range(self.attempts):
                try:
                    self.resume(url, path, bar, task)
                    return
                except RETRIED as error:
                    if attempt == self.attempts - 1 or not worth_retrying(error):
                        raise
                    time.sleep(self.pause * 2**attempt)

    def resume(self, url: str, path: Path, bar: Progress, task: Any) -> None:
        """One connection: ask for the bytes from the end of `path` on, and append them."""
        start = path.stat().st_size
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        with requests.get(url, headers=headers, stream=True, timeout=self.timeout) as response:
            if start and response.status_code == requests.codes.requested_range_not_satisfiable:
                return  # everything had arrived before the connection broke
            response.raise_for_status()
            resumed = response.status_code == requests.codes.partial_content
            received = start if resumed else 0
            length = response.headers.get("Content-Length")
            bar.update(task, completed=received, total=received + int(length) if length else None)
            with path.open("ab" if resumed else "wb") as file:
                for chunk in response.iter_content(CHUNK):
                    file.write(chunk)
                    bar.advance(task, len(chunk))


def data_folder(data: Path | None) -> Path | None:
    """The given folder, else `VMA_DATA`, else None; a folder that does not exist is an error."""
    folder = data or (Path(os.environ["VMA_DATA"]) if os.environ.get("VMA_DATA") else None)
    if folder is not None and not at_home(folder).is_dir():
        origin = "given as data" if data else "named by VMA_DATA"
        raise InputError(f"The folder {folder} {origin} does not exist: create it or name another.")
    return None if folder is None else at_home(folder)


def search_folders(data: Path | None) -> list[Path]:
    """The folders to look into, in this order."""
    folder = data_folder(data)
    return [*([folder] if folder else []), cache_folder() / "files"]


def locate(source: Source, data: Path | None = None) -> Path | None:
    """The file on this machine; None if it is not there."""
    paths = (folder / name for folder in search_folders(data) for name in source.names)
    return next((path for path in paths if path.is_file()), None)


def obtain(source: Source, data: Path | None = None, *, download: bool = True, progress: bool = True) -> Path:
    """The file on this machine, downloaded to the cache if necessary and allowed."""
    if path := locate(source, data):
        return path
    if not download:
        raise absent_file(source, data, "downloading is switched off")
    try:
        return fetch(source, ResumingDownloader(progress=progress))
    except (requests.RequestException, OSError) as error:
        raise absent_file(source, data, f"downloading it failed ({type(error).__name__})") from error


def fetch(source: Source, downloader: ResumingDownloader) -> Path:
    """Download to the cache, where the file appears complete and with the right checksum, or not at all."""

    import pooch  # here: it brings tqdm, which complains in every notebook without widgets

    def checked(url: str, output_file: str, instance: Any) -> None:
        downloader(url, output_file, instance)
        if source.git_blob and git_blob_id(Path(output_file)) != source.git_blob:
            raise ValueError("wrong git blob id")

    folder = cache_folder() / "files"
    known_hash = f"sha256:{source.sha256}" if source.sha256 else None
    try:
        return Path(pooch.retrieve(source.url, known_hash, source.name, folder, downloader=checked))
    except ValueError as error:
        if isinstance(error, requests.RequestException):
            raise
        raise InputError(
            f"The download of {source.name} from {source.url} has the wrong checksum and was deleted: "
            "try again, or get the file elsewhere and name its folder by --data or VMA_DATA."
        ) from error


def absent_file(source: Source, data: Path | None, reason: str) -> InputError:
    """The error for a file that was found nowhere: where it was looked for, and where to get it."""
    looked = " and ".join(str(folder) for folder in search_folders(data))
    return InputError(
        f"The file {source.name} is not in {looked}, and {reason}: "
        f"get it from {source.url} and put it in a folder that --data or VMA_DATA names."
    )


def progress_bar(visible: bool) -> Progress:
    """A bar on standard error with bytes and the time left."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), disable=not visible)


def worth_retrying(error: requests.RequestException) -> bool:
    """Whether another attempt may help: not if the server has answered that the file is not there."""
    return error.response is None or error.response.status_code >= 500


def check_published(source: Source, path: Path) -> None:
    """Refuse a file that differs from the published one, if only Git's id of that is known."""
    if source.sha256 is None and source.git_blob and git_blob_id(path) != source.git_blob:
        raise InputError(
            f"{path} is not the file that was published: its images can be read, but nothing says that they are "
            f"the right ones. Get it from {source.url}."
        )


def git_blob_id(path: Path) -> str:
    """sha1("blob <size>\\0" + content): what `git hash-object` prints."""
    content = path.read_bytes()
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()
