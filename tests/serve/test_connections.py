"""Connections that say nothing, half of something, or too much: they end, and everybody else is served."""

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.helpers.served import RING, drawing
from tests.serve.conftest import running_server
from vma.fewshot import TrainedModel
from vma.serve import Access
from vma.serve.connections import BACKLOG, CONNECTIONS, HEADER, RECORDS, REFUSED, Connection, Sparing
from vma.serve.guard import FIELDS, LONGEST, asked_token, cookie_of

HALF = b"GET /api/memory HTTP/1.1\r\nHost: 127.0.0.1\r\nX-"
TOKEN = 'a token; with = and "'


class Quick(Connection):
    """With short deadlines and few places."""

    most, per_client = 40, 10
    header_seconds, silent_seconds, linger_seconds, taking_seconds = 3.0, 0.2, 1.0, 1.0


@pytest.fixture
def address(model: TrainedModel, memory_path: Path) -> Iterator[tuple[str, int]]:
    with running_server(model, memory_path, http=Quick) as url:
        yield at(url)


def at(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return str(parts.hostname), int(parts.port or 0)


@contextmanager
def connections(address: tuple[str, int], count: int, words: bytes = b"") -> Iterator[list[socket.socket]]:
    """Many of them, each of which says the same and no more."""
    with ExitStack() as stack:
        made = [stack.enter_context(socket.create_connection(address, timeout=60)) for _ in range(count)]
        for each in made:
            each.sendall(words)
        yield made


def heard(connection: socket.socket) -> bytes:
    """All that the server says until it ends the connection."""
    said = b""
    try:
        while piece := connection.recv(2**16):
            said += piece
    except ConnectionResetError:
        pass
    return said


def status(address: tuple[str, int]) -> int:
    return httpx.get(f"http://{address[0]}:{address[1]}/api/memory", timeout=60).status_code


def test_half_sent_headers_come_to_an_end(address: tuple[str, int]) -> None:
    with connections(address, 30, HALF) as made:
        assert status(address) == 200
        answers = [heard(each) for each in made]
    assert all(answer.startswith(b"HTTP/1.1 408 ") for answer in answers)
    assert all(
        b'{"error": "The header took longer than 3 s: send it faster."}' in answer for answer in answers
    )
    assert all(b"Content-Security-Policy: default-src 'self'" in answer for answer in answers)


def test_silent_connections_come_to_an_end(address: tuple[str, int]) -> None:
    with connections(address, 30) as made:
        assert [heard(each) for each in made] == [b""] * 30


def test_dribbled_headers_come_to_an_end(address: tuple[str, int]) -> None:
    """Each byte used to put off the end."""
    with connections(address, 1, HALF) as (slow,):
        begun = time.monotonic()
        slow.settimeout(0.1)
        said = b""
        while not said and time.monotonic() < begun + 60:
            slow.sendall(b"a")
            try:
                said = slow.recv(2**16)
            except TimeoutError:
                continue
        assert said.startswith(b"HTTP/1.1 408 ")


def test_a_second_request_may_not_dribble_either(address: tuple[str, int]) -> None:
    with connections(address, 1, HALF + b"a: b\r\n\r\n" + HALF) as (slow,):
        said = heard(slow)
    assert said.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in said


def test_who_makes_way_may_have_left(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The end of its line cannot be written any more; the newcomer is served all the same."""

    def gone(*_: object) -> None:
        raise OSError(107, "Transport endpoint is not connected")

    monkeypatch.setattr("asyncio.selector_events._SelectorSocketTransport.write_eof", gone)
    with connections(address, Quick.most):
        time.sleep(2 * Quick.silent_seconds)
        assert status(address) == 200
    assert not [record for record in caplog.records if record.name == "asyncio"]


@pytest.mark.parametrize("words", [b"", HALF])
def test_silent_connections_make_room(address: tuple[str, int], words: bytes) -> None:
    with connections(address, Quick.most, words):
        time.sleep(2 * Quick.silent_seconds)
        for _ in range(5):
            assert status(address) == 200


def test_more_connections_than_places_are_told_so(address: tuple[str, int]) -> None:
    """None of them has been silent for long yet: whoever comes later is asked to come again."""
    with connections(address, 0) as made, ExitStack() as stack:
        Quick.silent_seconds, before = 60.0, Quick.silent_seconds
        try:
            made = [
                stack.enter_context(socket.create_connection(address, timeout=60))
                for _ in range(Quick.most + 8)
            ]
            answers = [heard(each) for each in made[Quick.most :]]
        finally:
            Quick.silent_seconds = before
    assert all(answer.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1" in answer for answer in answers)
    assert all(b'{"error": "The server is busy: try again in a moment."}' in answer for answer in answers)
    assert status(address) == 200


def test_one_client_does_not_take_all_places(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here all are of one client, as if from elsewhere: beyond ten, its own silent ones make room for its next."""
    monkeypatch.setattr("vma.serve.connections.is_local", lambda _: False)
    with connections(address, Quick.per_client) as made:
        time.sleep(2 * Quick.silent_seconds)
        assert status(address) == 200
        assert heard(made[0]).startswith(b"HTTP/1.1 503 ")
        made[1].settimeout(0.2)
        with pytest.raises(TimeoutError):
            made[1].recv(1)


@pytest.mark.parametrize(
    "bad", [b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"\\" * 60_000]
)
def test_what_is_no_request_is_answered_and_ended(address: tuple[str, int], bad: bytes) -> None:
    with connections(address, 1, bad) as (each,):
        said = heard(each)
    if said:  # a client that still sends may not get to read it
        assert said.startswith(b"HTTP/1.1 400 ")
        assert b'{"error": "The request cannot be read."}' in said
    assert status(address) == 200


def test_a_body_that_dribbles_is_given_up(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte used to put off the end."""
    head = b"POST /api/imagine HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999\r\n\r\n"
    monkeypatch.setattr("vma.serve.guard.Body.seconds_left", quick_seconds_left)
    with connections(address, 1, head) as (slow,):
        begun, said = time.monotonic(), b""
        slow.settimeout(0.1)
        while not said and time.monotonic() < begun + 60:
            slow.sendall(b" ")
            try:
                said = slow.recv(2**16)
            except TimeoutError:
                continue
        assert said.startswith(b"HTTP/1.1 408 ")


def quick_seconds_left(self) -> float:
    import asyncio

    now = asyncio.get_running_loop().time()
    self.end = self.end or now + 1.0
    return max(0.0, self.end - now)


def test_an_answer_that_nobody_takes_is_given_up(client: httpx.Client) -> None:
    """Of a client that stops reading, buffers fill up; its connection ends all the same."""
    limit = Connection.taking_seconds
    Connection.taking_seconds = 0.5
    try:
        for _ in range(8):
            client.post("/api/remember", json={"images": [drawing(RING)] * 64, "label": "x"})
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect((client.base_url.host, client.base_url.port))
            slow.sendall(b"GET /api/memory HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 40)
            time.sleep(3)
            slow.settimeout(60)
            said = heard(slow)
        assert said.startswith(b"HTTP/1.1 200 ")
        assert said.count(b"HTTP/1.1 200 ") < 40
    finally:
        Connection.taking_seconds = limit


def test_the_log_does_not_grow_with_what_is_sent(
    model: TrainedModel, memory_path: Path, capsys: pytest.CaptureFixture
) -> None:
    with running_server(model, memory_path) as url:
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        for _ in range(100):
            with connections(at(url), 1, b"\x16\x03\x01\r\n\r\n") as (each,):
                heard(each)
        upgrade = {"Connection": "upgrade", "Upgrade": "websocket"}
        with httpx.Client(base_url=url) as client:
            for _ in range(100):
                assert client.get("/api/memory", headers=upgrade).status_code == 200
    assert capsys.readouterr().err.count("\n") == RECORDS


def test_the_last_record_of_a_minute_says_so() -> None:
    sparing = Sparing(records=3, seconds=0.2)
    records = [logging.LogRecord("x", logging.WARNING, "", 0, "number %d", (i,), None) for i in range(5)]
    assert [sparing.filter(record) for record in records] == [True, True, True, False, False]
    assert records[2].getMessage() == "number 2 (No more is said for a while.)"
    time.sleep(0.3)
    assert sparing.filter(records[4])


def test_places_are_fewer_than_files_that_a_process_may_open() -> None:
    assert CONNECTIONS + REFUSED + 2 * BACKLOG < 1024 - 64


def test_a_cookie_is_taken_apart_at_its_semicolons_alone() -> None:
    assert cookie_of("a=b; vma-token=secret; c=d") == "secret"
    assert cookie_of("vma-token=a%3B%20b") == "a; b"
    assert cookie_of('vma-token="x') == '"x'
    assert cookie_of("vma-token") == ""
    assert cookie_of("") is None
    assert cookie_of("my-vma-token=x") is None
    assert cookie_of("\\" * LONGEST + "; vma-token=secret") is None
    assert LONGEST < HEADER


def test_an_address_with_too_much_in_it_has_no_token() -> None:
    def asked(query: str) -> str | None:
        return asked_token({"query_string": query.encode()})

    assert asked("a=b&token=secret") == "secret"
    assert asked("token=secret&" + "x=1&" * FIELDS) is None
    assert asked("token=secret&x=" + "1" * LONGEST) is None
    assert asked("") is None


def test_a_token_of_any_plain_characters_comes_back_as_a_cookie(
    model: TrainedModel, memory_path: Path
) -> None:
    access, wrong = Access.to("0.0.0.0", TOKEN), {"Cookie": "vma-token=" + "\\" * 9000}
    with running_server(model, memory_path, access) as url, httpx.Client(base_url=url) as client:
        assert client.get("/api/memory", headers=wrong).status_code == 401
        assert client.get("/", params={"token": TOKEN}).status_code == 303
        assert client.get("/api/memory").status_code == 200


@pytest.mark.parametrize("path", ["/api/imagine", "/api/forget"])
def test_a_message_without_pictures_is_small(client: httpx.Client, path: str) -> None:
    response = client.post(path, content=b"[" + b"[]," * 2**19, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()) == (
        413, {"error": "The request is larger than 1 MB: send less at a time."},
    )  # fmt: skip
