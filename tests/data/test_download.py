"""Where files come from, with a small server on this machine in the place of the network."""

import functools
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.helpers.data_files import NOWHERE, sha256
from vma.data.sources import CHUNK, ResumingDownloader, Source, fetch, git_blob_id, locate, obtain
from vma.errors import InputError

CONTENT = bytes(range(256)) * 1000
QUICK = ResumingDownloader(attempts=3, pause=0.0, timeout=5.0, progress=False)


class Server:
    """Serves CONTENT; `plan` says how each request is answered, and `ranges` records what was asked."""

    def __init__(self) -> None:
        self.plan: list[str] = []
        self.ranges: list[str | None] = []
        self.content = CONTENT
        handler = functools.partial(Handler, self)
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/some/file.zip"


class Handler(BaseHTTPRequestHandler):
    def __init__(self, owner: Server, *args: object) -> None:
        self.owner = owner
        super().__init__(*args)  # type: ignore[arg-type]

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.owner.ranges.append(asked)
        how = self.owner.plan.pop(0) if self.owner.plan else "whole"
        if how in ("404", "503"):
            self.send_error(int(how))
            return
        start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) if asked and how != "no-range" else 0
        body = self.owner.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if how == "cut" else body)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join()


def source_at(url: str, content: bytes = CONTENT) -> Source:
    return Source("file.zip", url, len(content), sha256=sha256(content), aliases=("other-name.zip",))


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_whole_download(server: Server, own_cache: Path) -> None:
    path = obtain(source_at(server.url), progress=False)
    assert path == own_cache / "files" / "file.zip"
    assert path.read_bytes() == CONTENT
    assert files_in(own_cache) == ["file.zip"]
    assert obtain(source_at(server.url)) == path
    assert server.ranges == [None]


@pytest.mark.parametrize("plan", [["whole"], ["cut", "whole"], ["cut", "no-range"]])
def test_progress_is_drawn_on_standard_error(
    server: Server, capfd: pytest.CaptureFixture[str], plan: list[str]
) -> None:
    server.plan = plan
    fetch(source_at(server.url), ResumingDownloader(attempts=2, pause=0.0))
    out, err = capfd.readouterr()
    assert out == ""
    assert "file.zip" in err
    assert "256.0/256.0" in err


def test_resumes_where_it_was_cut(server: Server) -> None:
    server.plan = ["cut", "cut", "whole"]
    assert fetch(source_at(server.url), QUICK).read_bytes() == CONTENT
    starts = [int(asked.removeprefix("bytes=").removesuffix("-")) for asked in server.ranges[1:] if asked]
    half = len(CONTENT) // 2
    assert server.ranges[0] is None
    assert 0 <= half - starts[0] < CHUNK
    assert 0 <= (len(CONTENT) + starts[0]) // 2 - starts[1] < CHUNK


def test_starts_again_where_the_server_cannot_resume(server: Server) -> None:
    server.plan = ["cut", "no-range"]
    assert fetch(source_at(server.url), QUICK).read_bytes() == CONTENT
    assert len(server.ranges) == 2


def test_tries_again_after_an_error_of_the_server(server: Server) -> None:
    server.plan = ["503", "whole"]
    assert fetch(source_at(server.url), QUICK).read_bytes() == CONTENT


@pytest.mark.parametrize("plan", [["404"], ["503"] * 3, ["cut"] * 3])
def test_failed_download_leaves_nothing(
    server: Server, own_cache: Path, plan: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.plan = list(plan)
    monkeypatch.setattr("vma.data.sources.ResumingDownloader", lambda progress: QUICK)
    with pytest.raises(InputError, match=r"file\.zip is not in .* downloading it failed"):
        obtain(source_at(server.url))
    assert len(server.ranges) == len(plan)
    assert files_in(own_cache) == []


def test_corrupt_download_leaves_nothing(server: Server, own_cache: Path) -> None:
    server.content = CONTENT[:-1] + b"?"
    with pytest.raises(InputError, match="wrong checksum and was deleted"):
        fetch(source_at(server.url), QUICK)
    assert files_in(own_cache) == []


def test_git_blob_id_in_place_of_sha256(server: Server, own_cache: Path, tmp_path: Path) -> None:
    (tmp_path / "hello").write_bytes(b"hello\n")
    assert git_blob_id(tmp_path / "hello") == "ce013625030ba8dba906f756967f9e9ca394464a"
    server.content = b"hello\n"
    right = Source("file.mat", server.url, None, git_blob="ce013625030ba8dba906f756967f9e9ca394464a")
    assert fetch(right, QUICK).read_bytes() == b"hello\n"
    wrong = Source("wrong.mat", server.url, None, git_blob="0" * 40)
    with pytest.raises(InputError, match="wrong checksum"):
        fetch(wrong, QUICK)
    assert files_in(own_cache) == ["file.mat"]


def test_order_of_folders(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_at(NOWHERE)
    folders = {name: tmp_path / name for name in ("given", "environment")} | {"cache": own_cache / "files"}
    for folder in folders.values():
        folder.mkdir(parents=True)
        (folder / "file.zip").write_bytes(b"repacked: its content is verified when it is read")
    monkeypatch.setenv("VMA_DATA", str(folders["environment"]))
    assert locate(source, folders["given"]) == folders["given"] / "file.zip"
    assert locate(source) == folders["environment"] / "file.zip"
    (folders["environment"] / "file.zip").rename(folders["environment"] / "other-name.zip")
    assert obtain(source) == folders["environment"] / "other-name.zip"
    (folders["environment"] / "other-name.zip").unlink()
    assert obtain(source) == folders["cache"] / "file.zip"


def test_no_network_and_no_file(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vma.data.sources.ResumingDownloader", lambda progress: QUICK)
    with pytest.raises(InputError) as caught:
        obtain(source_at(NOWHERE), tmp_path)
    message = str(caught.value)
    for part in ("file.zip", str(tmp_path), str(own_cache), NOWHERE, "--data", "VMA_DATA"):
        assert part in message
    assert "\n" not in message
    with pytest.raises(InputError, match="downloading is switched off"):
        obtain(source_at(NOWHERE), download=False)


def test_folder_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="given as data does not exist"):
        locate(source_at(NOWHERE), tmp_path / "nowhere")
    monkeypatch.setenv("VMA_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="named by VMA_DATA does not exist"):
        locate(source_at(NOWHERE))
