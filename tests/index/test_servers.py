"""A server that is away, is none, is too old or refuses us: one clear sentence each, without a Milvus."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.indexes import keys_of, place_of
from tests.helpers.large_folders import filled
from vma.cli import run
from vma.errors import InputError
from vma.index.milvus import MilvusIndex
from vma.index.milvus_server import MilvusServer, address_of, grpc, pymilvus
from vma.large import open_snapshot

ROOT = Path(__file__).parents[2]
milvus_pb2: Any = pytest.importorskip("pymilvus.grpc_gen.milvus_pb2")
services: Any = pytest.importorskip("pymilvus.grpc_gen.milvus_pb2_grpc")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who does not answer is given up soon, and the environment names no server."""
    monkeypatch.setattr("vma.index.milvus_server.SECONDS", 1.0)
    monkeypatch.delenv("VMA_INDEX_SERVER", raising=False)


class Old(services.MilvusServiceServicer):
    """A server that says what version it has, or why it refuses."""

    def __init__(self, version: str, refusal: Any = None) -> None:
        self.version, self.refusal = version, refusal

    def Connect(self, request: Any, context: Any) -> Any:
        if self.refusal is not None:
            context.abort(*self.refusal)
        about = pymilvus.grpc_gen.common_pb2.ServerInfo(build_tags=self.version)
        return milvus_pb2.ConnectResponse(identifier=1, server_info=about)

    def GetVersion(self, request: Any, context: Any) -> Any:
        return milvus_pb2.GetVersionResponse(version=self.version)


@contextmanager
def serving(servicer: Any) -> Iterator[str]:
    """The address of a server of Milvus' protocol."""
    server = grpc.server(ThreadPoolExecutor(2))
    services.add_MilvusServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"http://127.0.0.1:{port}"
    server.stop(None).wait()


@contextmanager
def silence() -> Iterator[str]:
    """The address of somebody who takes calls and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@contextmanager
def pages() -> Iterator[str]:
    """The address of a server of web pages."""
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def nobody() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"http://127.0.0.1:{listening.getsockname()[1]}"


AWAY = r"^The Milvus server at http://127\.0\.0\.1:\d+ does not answer: start it, or say where it is by VMA_INDEX_S"


@pytest.mark.parametrize("who", [silence, pages])
def test_who_is_no_engine_does_not_answer(who: Callable[[], Any]) -> None:
    with who() as address, pytest.raises(InputError, match=AWAY):
        MilvusServer(address)


def test_where_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=AWAY):
        MilvusIndex(place_of(tmp_path, keys_of(10), server=nobody()))


@pytest.mark.parametrize("version", ["2.2.16", "v2.2.9-lite", "1.1", "dev"])
def test_a_server_that_is_too_old(version: str) -> None:
    expected = rf"is of version {version}, and 2\.3 or later is needed: update it\.$"
    with serving(Old(version)) as address, pytest.raises(InputError, match=expected):
        MilvusServer(address)


@pytest.mark.parametrize("version", ["2.3.5", "v2.3.5-lite", "v2.6.1", "3.0.0-beta"])
def test_a_server_that_is_new_enough(version: str) -> None:
    with serving(Old(version)) as address:
        assert MilvusServer(address).address == address


def test_a_server_that_refuses_us() -> None:
    refusal = grpc.StatusCode.UNAUTHENTICATED, "auth check failure, please check username and password"
    with (
        serving(Old("2.3.5", refusal)) as address,
        pytest.raises(InputError, match="refuses this user: set VMA_"),
    ):
        MilvusServer(address)


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("", r"This index is on a server: say where with '--server http://HOST:19530'"),
        ("http://root:secret@host:1", "The address of an index has no user and password"),
        ("./milvus.db", r"\./milvus\.db is not the address of a Milvus server: say http://HOST:19530"),
        ("tcp://host:1", "is not the address of a Milvus server"),
    ],
)
def test_addresses_that_are_none(server: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        address_of(server)
    assert "secret" not in str(caught.value)


def test_the_environment_says_where_the_server_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VMA_INDEX_SERVER", "https://elsewhere:19530")
    assert address_of("http://host:1") == "https://elsewhere:19530"


def test_a_memory_whose_new_index_is_away_keeps_its_old_one(tmp_path: Path) -> None:
    folder = filled(tmp_path / "m")
    for server, message in ((nobody(), "does not answer"), ("", "This index is on a server")):
        with pytest.raises(InputError, match=message):
            run(["memory", "index", str(folder), "milvus", "--server", server])
        assert open_snapshot(folder).manifest.index == "auto"
    with pytest.raises(InputError, match="has no user and password"):
        run(["memory", "index", str(folder), "milvus", "--server", "http://me:secret@host:1"])
    assert "secret" not in (folder / "memory.json").read_text()
    assert np.array_equal(open_snapshot(folder).alive(), np.arange(30))


def test_the_document_states_what_a_server_costs() -> None:
    found = json.loads((ROOT / "results/engine.json").read_text())
    text = " ".join((ROOT / "docs/large-memories.md").read_text().split())
    assert (found["items"], found["items_after_kill"], found["candidates"]) == (50_000, 50_000, 256)
    asked = f"took {found['session_ms']:.1f} ms, {found['strong_ms']:.0f} ms if it had to be `Strong`, and "
    assert f"{asked}{found['exact_ms']:.1f} ms by the exact index" in text
    assert f"{found['nats_lost']:.4f} nats were lost" in text
    assert f"Adding took {found['add_s']:.0f} s, making the lists {found['lists_s']:.0f} s." in text
    back = f"back after {found['start_after_kill_s']:.0f} s, and the first answer came "
    assert f"{back}{found['first_answer_after_start_s']:.0f} s later" in text
