"""Where files come from: the user's folder, else the cache, else a download."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pooch
import requests

from vma.data.cache import cache_folder
from vma.data.download import ResumingDownloader, git_blob_id
from vma.errors import InputError


@dataclass(frozen=True)
class Source:
    """A file that a dataset is read from.

    Attributes:
        name: Its name in the cache.
        url: Where it is downloaded from.
        size: Size of the download in bytes, or None where it is not known.
        sha256: Checksum of the download, or None where only `git_blob` is known.
        git_blob: Git's id of the download.
        aliases: Other names under which a user may have it; its content is verified after reading.
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


def data_folder(data: Path | None) -> Path | None:
    """The folder given, else `VMA_DATA`, else None; a folder that does not exist is an error."""
    folder = data or (Path(os.environ["VMA_DATA"]) if os.environ.get("VMA_DATA") else None)
    if folder is not None and not folder.expanduser().is_dir():
        origin = "given as data" if data else "named by VMA_DATA"
        raise InputError(f"The folder {folder} {origin} does not exist: create it or name another.")
    return None if folder is None else folder.expanduser()


def search_folders(data: Path | None) -> list[Path]:
    """The folders that are looked into, in this order."""
    folder = data_folder(data)
    return [*([folder] if folder else []), cache_folder() / "files"]


def locate(source: Source, data: Path | None = None) -> Path | None:
    """The file on this machine, or None."""
    paths = (folder / name for folder in search_folders(data) for name in source.names)
    return next((path for path in paths if path.is_file()), None)


def obtain(source: Source, data: Path | None = None, *, download: bool = True, progress: bool = True) -> Path:
    """The file on this machine, downloaded to the cache if need be and if `download` allows it."""
    if path := locate(source, data):
        return path
    if not download:
        raise _absent(source, data, "downloading is switched off")
    try:
        return fetch(source, ResumingDownloader(progress=progress))
    except (requests.RequestException, OSError) as error:
        raise _absent(source, data, f"downloading it failed ({type(error).__name__})") from error


def fetch(source: Source, downloader: ResumingDownloader) -> Path:
    """Download to the cache: the file appears there whole and with the right checksum, or not at all."""

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


def _absent(source: Source, data: Path | None, reason: str) -> InputError:
    looked = " and ".join(str(folder) for folder in search_folders(data))
    return InputError(
        f"The file {source.name} is not in {looked}, and {reason}: "
        f"get it from {source.url} and put it in a folder that --data or VMA_DATA names."
    )
