"""Hostile input: every answer has the one shape, the server stays up, and the memory is as it was."""

import base64
import http.client
import io
import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from PIL import Image
from safetensors.torch import save

from tests.helpers.served import CROSS, RING, SIDE, drawing, encode
from tests.serve.conftest import running_server
from vma.errors import InputError
from vma.fewshot import TrainedModel
from vma.serve import Store
from vma.serve import store as store_module
from vma.serve.guard import BODY, ITEMS
from vma.serve.store import Contents


@pytest.fixture(scope="module")
def server(model: TrainedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One server for many attacks."""
    path = tmp_path_factory.mktemp("hostile") / "memory.safetensors"
    with running_server(model, path) as address, httpx.Client(base_url=address, timeout=60) as client:
        for label, strokes in (("ring", RING), ("cross", CROSS)):
            client.post("/api/remember", json={"images": [drawing(strokes)], "label": label})
        yield client
        assert len(client.post("/api/imagine", json={}).json()["images"]) == 16


@pytest.fixture
def victim(server: httpx.Client) -> Iterator[httpx.Client]:
    """A server with two cards, which has to have the same two cards afterwards."""
    before = server.get("/api/memory").json()
    assert len(before["cards"]) == 2
    yield server
    assert server.get("/api/memory").json() == before


def check_refused(response: httpx.Response, *status: int) -> str:
    """That the answer is of the one shape, a sentence without a trace; the sentence."""
    assert response.status_code in status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert set(body) == {"error"}
    assert body["error"].endswith(".")
    assert "Traceback" not in body["error"]
    assert "site-packages" not in body["error"]
    return body["error"]


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width: int, height: int, *chunks: bytes) -> str:
    """A PNG of one-bit pixels that says it is of this size, whatever its chunks hold."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + chunk(b"IEND", b"")).decode()


def bomb(width: int, height: int) -> str:
    """All white, compressed a thousandfold."""
    row = bytes([0] + [255] * ((width + 7) // 8))
    packer = zlib.compressobj(9)
    content = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    return png(width, height, chunk(b"IDAT", content))


def text_bomb() -> str:
    """A small image with a comment of 100 MB."""
    packer = zlib.compressobj(9)
    comment = b"".join(packer.compress(bytes(2**20)) for _ in range(100)) + packer.flush()
    pixels = zlib.compress(bytes(4 * 16))
    return png(16, 16, chunk(b"zTXt", b"a\0\0" + comment), chunk(b"IDAT", pixels))


def jpeg() -> str:
    file = io.BytesIO()
    Image.new("L", (26, 26), 255).save(file, "JPEG")
    return base64.b64encode(file.getvalue()).decode()


IMAGES = {
    "bad base64": "!!!not base64!!!",
    "a data: prefix": f"data:image/png;base64,{drawing(RING)}",
    "line breaks": drawing(RING)[:40] + "\n" + drawing(RING)[40:],
    "letters beyond ASCII": "é" * 8,
    "nothing": "",
    "not an image": base64.b64encode(b"<svg onload=alert(1)>" * 10).decode(),
    "another format": jpeg(),
    "cut short": drawing(RING)[:200],
    "blank": encode(Image.new("L", (26, 26), 255)),
    "a zip bomb": bomb(40_000, 40_000),
    "a bomb within Pillow's limits": bomb(9_000, 9_000),
    "a flat bomb": bomb(1_000_000, 2),
    "a bomb in a comment": text_bomb(),
    "no pixels": png(0, 0, chunk(b"IDAT", zlib.compress(b""))),
    "sizes beyond 31 bits": png(2**31 + 5, 2**31 + 5, chunk(b"IDAT", zlib.compress(b""))),
}


@pytest.mark.parametrize("name", list(IMAGES))
def test_images_that_are_none(victim: httpx.Client, name: str) -> None:
    check_refused(victim.post("/api/recognise", json={"image": IMAGES[name]}), 422)
    images = [drawing(CROSS), IMAGES[name]]
    check_refused(victim.post("/api/remember", json={"images": images, "label": "x"}), 422)


MESSAGES: list[tuple[str, Any]] = [
    ("remember", {"images": [], "label": "x"}),
    ("remember", {"images": [drawing(RING)] * 65, "label": "x"}),
    ("remember", {"images": "x", "label": "x"}),
    ("remember", {"images": [{}], "label": "x"}),
    ("remember", {"images": [drawing(RING)]}),
    ("remember", {"images": [drawing(RING)], "label": ""}),
    ("remember", {"images": [drawing(RING)], "label": "   "}),
    ("remember", {"images": [drawing(RING)], "label": "x" * 41}),
    ("remember", {"images": [drawing(RING)], "label": "a\0b"}),
    ("remember", {"images": [drawing(RING)], "label": "a\nb"}),
    ("remember", {"images": [drawing(RING)], "label": 7}),
    ("remember", {"images": [drawing(RING)], "label": "x", "path": "/etc/passwd"}),
    ("forget", {"ids": []}),
    ("forget", {"ids": ["x"] * 1001}),
    ("forget", {"ids": "x"}),
    ("forget", {}),
    ("rename", {"ids": ["x"], "label": None}),
    ("undo", {"version": "1"}),
    ("undo", {"version": 1.5}),
    ("undo", {}),
    ("keep", {"pixels": [], "label": "x"}),
    ("keep", {"pixels": ["AAAA"], "label": "x"}),
    ("keep", {"pixels": ["!"], "label": "x"}),
    ("keep", {"pixels": [base64.b64encode(bytes(SIDE * SIDE)).decode()], "label": "x"}),
    ("vary", {"points": [[0, 0]]}),
    ("vary", {"card": "x", "pixels": "AAAA", "points": [[0, 0]]}),
    ("vary", {"pixels": "AAAA", "points": [[0, 0]]}),
    ("imagine", {"count": 0}),
    ("imagine", {"count": 65}),
    ("imagine", {"count": "16"}),
    ("imagine", {"count": 1.5}),
    ("imagine", {"count": True}),
    ("imagine", {"temperature": -0.1}),
    ("imagine", {"temperature": 1e300}),
    ("imagine", {"temperature": "hot"}),
    ("imagine", {"seed": -1}),
    ("imagine", {"seed": 10**400}),
    ("imagine", {"label": "no such name"}),
    ("imagine", {"card": {"$ne": 1}}),
    ("vary", {"card": "x", "points": []}),
    ("vary", {"card": "x", "points": [[0, 0]] * 82}),
    ("vary", {"card": "x", "points": [[0]]}),
    ("vary", {"card": "x", "points": [[0, 7]]}),
    ("vary", {"card": "x", "points": [[0, "0"]]}),
    ("recognise", {"image": None}),
    ("recognise", {"image": [drawing(RING)]}),
    ("recognise", []),
    ("recognise", "image"),
    ("recognise", None),
]


@pytest.mark.parametrize(("path", "message"), MESSAGES)
def test_messages_of_the_wrong_form(victim: httpx.Client, path: str, message: Any) -> None:
    check_refused(victim.post(f"/api/{path}", content=json.dumps(message).encode(), headers=JSON), 422, 400)


JSON = {"Content-Type": "application/json"}
BODIES = {
    "no JSON": b"{",
    "nothing": b"",
    "NaN": b'{"temperature": NaN}',
    "infinity": b'{"temperature": Infinity}',
    "a number beyond floats": b'{"temperature": 1e999}',
    "an endless number": b'{"count": ' + b"9" * 100_000 + b"}",
    "half a character": b'{"label": "\\ud800"}',
    "not UTF-8": b'{"label": "\xff\xfe"}',
    "deep nesting": b"[" * 200_000,
    "deep nesting of objects": b'{"a":' * 200_000,
    "many keys": b"{" + b",".join(b'"%d":1' % i for i in range(50_000)) + b"}",
}


@pytest.mark.parametrize("name", list(BODIES))
def test_bodies_that_are_no_messages(victim: httpx.Client, name: str) -> None:
    check_refused(victim.post("/api/imagine", content=BODIES[name], headers=JSON), 422, 400)


def test_another_kind_of_body_is_refused(victim: httpx.Client) -> None:
    """A form on another page can send these without asking first; JSON it cannot."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        body = json.dumps({"count": 1}).encode()
        check_refused(victim.post("/api/imagine", content=body, headers={"Content-Type": kind}), 422)


@pytest.mark.parametrize("path", ["remember", "recognise", "memory/file", "imagine", "examples"])
def test_a_body_larger_than_it_says_or_says_it_is(victim: httpx.Client, path: str) -> None:
    def stream() -> Iterator[bytes]:
        for _ in range(BODY // 2**16 + 2):
            yield b" " * 2**16

    check_refused(victim.post(f"/api/{path}", content=b" " * (BODY + 1), headers=JSON), 413)
    if path != "examples":  # which takes no body, and so reads none
        check_refused(victim.post(f"/api/{path}", content=stream(), headers=JSON), 413)


PATHS = [
    "/page/../app.py",
    "/page/..%2fapp.py",
    "/page/%2e%2e/app.py",
    "/page/..%5capp.py",
    "/page/....//app.py",
    "/page//etc/passwd",
    "/page/%2fetc%2fpasswd",
    "/page/main.js%00.png",
    "/page/" + "a" * 5000,
    "/page/",
    "/page/%ff",
    "/../../../etc/passwd",
    "/api/memory/../../app.py",
    "/api/nothing",
    "/%00",
]


@pytest.mark.parametrize("path", PATHS)
def test_path_tricks_find_nothing(victim: httpx.Client, path: str) -> None:
    connection = http.client.HTTPConnection(victim.base_url.host, victim.base_url.port)
    connection.putrequest("GET", path)
    connection.endheaders()
    response = connection.getresponse()
    body = json.loads(response.read())
    connection.close()
    assert response.status == 404
    assert body == {"error": "There is nothing at this address."}


def test_methods_that_an_address_does_not_take(victim: httpx.Client) -> None:
    for method, path in (
        ("GET", "/api/imagine"),
        ("DELETE", "/api/memory"),
        ("POST", "/"),
        ("PUT", "/page/main.js"),
    ):
        check_refused(victim.request(method, path), 405)


def test_names_are_only_names(client: httpx.Client, memory_path: Path) -> None:
    labels = ["../../../etc/passwd", "<img src=x onerror=alert(1)>", "'; DROP", "ﷺ" * 40, "🇨🇭👩‍👩‍👧", "%s%n"]
    for number, label in enumerate(labels):
        response = client.post("/api/remember", json={"images": [drawing(RING)], "label": label})
        assert response.status_code == 200
        assert response.json()["cards"][number]["label"] == label
    assert sorted(path.name for path in memory_path.parent.iterdir()) == [
        f".{memory_path.name}.lock", memory_path.name,
    ]  # fmt: skip


def test_unknown_cards_are_named_as_such(victim: httpx.Client) -> None:
    card = victim.get("/api/memory").json()["cards"][0]["id"]
    for path, message in (
        ("forget", {"ids": [card, "0" * 12]}),
        ("rename", {"ids": ["0" * 12], "label": "x"}),
        ("imagine", {"card": "0" * 12}),
        ("vary", {"card": "../" + card, "points": [[0, 0]]}),
    ):
        check_refused(victim.post(f"/api/{path}", json=message), 404)


def header_of(labels: list[str | None]) -> dict[str, str]:
    return {"format": "vma-memory", "version": "1", "labels": json.dumps(labels), "model": ""}


ITEMS_OF_TWO = torch.zeros(2, SIDE, SIDE, dtype=torch.uint8)
FILES = {
    "nothing": b"",
    "text": b"not a memory",
    "a header without an end": struct.pack("<Q", 2**62) + b"{}",
    "another file": save({"weight": torch.zeros(3, dtype=torch.float32)}),
    "another size": save({"items": torch.zeros(2, 9, 9, dtype=torch.uint8)}, header_of(["a", "b"])),
    "too few labels": save({"items": ITEMS_OF_TWO}, header_of(["a"])),
    "floats": save({"items": ITEMS_OF_TWO.float() / 0}, header_of(["a", "b"])),
    "too many": save(
        {"items": torch.zeros(ITEMS + 1, SIDE, SIDE, dtype=torch.uint8)}, header_of(["a"] * (ITEMS + 1))
    ),
}


@pytest.mark.parametrize("name", list(FILES))
def test_files_that_are_no_memory(victim: httpx.Client, name: str) -> None:
    sentence = check_refused(victim.post("/api/memory/file", content=FILES[name]), 422)
    assert "memory.safetensors" not in sentence
    assert "/tmp" not in sentence


def test_a_file_cannot_bring_keys_or_names_that_harm(client: httpx.Client, model: TrainedModel) -> None:
    items = torch.full((3, SIDE, SIDE), 255, dtype=torch.uint8)
    header = {**header_of([None, "\0" * 80, "long " * 80]), "model": model.fingerprint}
    keys = torch.full((3, 7), 3e38)
    response = client.post("/api/memory/file", content=save({"items": items, "keys": keys}, header))
    assert response.status_code == 200
    labels = [card["label"] for card in response.json()["cards"]]
    assert labels[:2] == ["unnamed", 10 * "\\x00"]
    assert len(labels[2]) <= 40
    assert client.post("/api/recognise", json={"image": drawing(RING)}).status_code == 200


def test_no_more_cards_than_the_limit(model: TrainedModel) -> None:
    contents = Contents(("x",) * ITEMS, None)
    with pytest.raises(InputError, match=f"holds {ITEMS} cards at most"):
        contents.add(model, [torch.eye(SIDE)], "x")


def test_what_can_be_taken_back_does_not_grow_without_end(
    model: TrainedModel, memory_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred steps of a memory of a thousand cards would be a hundred thousand cards."""
    monkeypatch.setattr(store_module, "PAST_CARDS", 10)
    store = Store(model, memory_path)
    try:
        for number in range(1, 12):
            store.change("remember", lambda contents: Contents((*contents.ids, str(len(contents.ids)))))
            assert 1 <= len(store.past) <= number
            assert len(store.past) == 1 or sum(len(each.ids) for each, _ in store.past) <= 10
        assert store.undo(store.now.version).contents.ids == tuple(map(str, range(10)))
    finally:
        store.close()


def test_a_damaged_file_is_left_alone(model: TrainedModel, memory_path: Path) -> None:
    memory_path.write_bytes(b"precious, but not readable")
    for _ in range(2):
        with pytest.raises(InputError, match="not a memory file, or is damaged"):
            Store(model, memory_path)
    assert memory_path.read_bytes() == b"precious, but not readable"


def test_two_servers_cannot_have_one_file(model: TrainedModel, memory_path: Path) -> None:
    store = Store(model, memory_path)
    with pytest.raises(InputError, match="open in another server"):
        Store(model, memory_path)
    store.close()
    Store(model, memory_path).close()


def test_a_change_that_cannot_be_written_does_not_happen(
    victim: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes, *, private: bool) -> None:
        raise InputError(f"Cannot write {path.name}: No space left on device.")

    with monkeypatch.context() as patch:
        patch.setattr("vma.serve.store.write_atomically", full)
        response = victim.post("/api/remember", json={"images": [drawing(RING)], "label": "x"})
        assert check_refused(response, 422) == "Cannot write memory.safetensors: No space left on device."


def test_a_mistake_of_ours_is_a_sentence_and_a_log_entry(
    victim: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    with monkeypatch.context() as patch:
        patch.setattr("vma.serve.app.imagine", broken)
        once = {"Connection": "close"}  # uvicorn drops the connection after such an answer, sooner or later
        sentence = check_refused(victim.post("/api/imagine", json={}, headers=once), 500)
    assert sentence == "Something went wrong in the server; the memory is as it was."
    assert "secret detail" in caplog.text
