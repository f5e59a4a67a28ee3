"""A downloader for pooch that shows progress, tries again and goes on where a broken connection stopped."""

import hashlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

CHUNK = 1 << 13  # what a broken connection may lose
RETRIED = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.HTTPError,
)


@dataclass(frozen=True)
class ResumingDownloader:
    """Writes a URL to a file; a callable as pooch expects.

    Attributes:
        attempts: How often to connect before giving up; what has arrived is kept between them.
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
        with _bar(self.progress) as bar:
            task = bar.add_task(url.rsplit("/", 1)[-1], total=None)
            for attempt in range(self.attempts):
                try:
                    self._continue(url, path, bar, task)
                    return
                except RETRIED as error:
                    if attempt == self.attempts - 1 or not _worth_retrying(error):
                        raise
                    time.sleep(self.pause * 2**attempt)

    def _continue(self, url: str, path: Path, bar: Progress, task: Any) -> None:
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


def _bar(visible: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), disable=not visible)


def _worth_retrying(error: requests.RequestException) -> bool:
    """Not where the server has answered that the file is not there."""
    return error.response is None or error.response.status_code >= 500


def git_blob_id(path: Path) -> str:
    """sha1("blob <size>\\0" + content): what `git hash-object` prints."""
    content = path.read_bytes()
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()
