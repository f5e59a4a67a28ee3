"""Who may ask: this machine, by its own name, from its own page; or whoever has the token."""

import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.helpers.served import RING, drawing
from tests.serve.conftest import running_server
from vma.commands.serve import address_of
from vma.errors import InputError
from vma.fewshot import TrainedModel
from vma.serve import Access
from vma.serve.guard import is_loopback
from vma.serve.token import LONGEST, VARIABLE, choose_token

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def client(model: TrainedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Someone who talks to a server that is bound to this machine."""
    path = tmp_path_factory.mktemp("here") / "memory.safetensors"
    with running_server(model, path) as address, httpx.Client(base_url=address) as client:
        yield client


@pytest.fixture(scope="module")
def guarded(model: TrainedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that is bound to the world, and asks for the token."""
    path = tmp_path_factory.mktemp("elsewhere") / "memory.safetensors"
    with running_server(model, path, Access.to("0.0.0.0", TOKEN)) as address:
        yield address


@pytest.fixture
def elsewhere(guarded: str) -> Iterator[httpx.Client]:
    """Someone without cookies who talks to it."""
    with httpx.Client(base_url=guarded) as client:
        yield client


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "[::1", "10.0.0.5:8000", "a@b"]
)
def test_another_name_for_this_machine_is_refused(client: httpx.Client, host: str) -> None:
    for path in ("/", "/api/memory", "/page/main.js"):
        response = client.get(path, headers={"Host": host})
        assert response.status_code == 403
        assert "its own address only" in response.json()["error"]


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST:80"])
def test_its_own_names_are_answered(client: httpx.Client, host: str) -> None:
    assert client.get("/api/memory", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"])
def test_another_page_cannot_change_the_memory(client: httpx.Client, origin: str) -> None:
    before = client.get("/api/memory").json()
    message = {"images": [drawing(RING)], "label": "x"}
    response = client.post("/api/remember", json=message, headers={"Origin": origin})
    assert (response.status_code, response.json()) == (
        403,
        {"error": "Another page may not change this memory."},
    )
    assert "access-control-allow-origin" not in response.headers
    assert client.get("/api/memory").json() == before


def test_its_own_page_can(client: httpx.Client) -> None:
    origin = str(client.base_url).rstrip("/")
    message = {"images": [drawing(RING)], "label": "x"}
    assert client.post("/api/remember", json=message, headers={"Origin": origin}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Cookie": "vma-token=wrong"},
        {"Cookie": '{"broken": "cookie'},
        {"Cookie": "vma-token=\u00e9".encode("latin-1").decode("latin-1")},
    ],
)
def test_without_the_token_there_is_nothing(elsewhere: httpx.Client, headers: dict[str, str]) -> None:
    sent = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    for path in ("/", "/api/memory", "/page/main.js", "/?token=wrong", "/api/memory?token=" + TOKEN):
        response = elsewhere.get(path, headers=sent)
        assert response.status_code == 401
        assert "needs its token" in response.json()["error"]


def test_the_token_in_a_header(elsewhere: httpx.Client) -> None:
    assert elsewhere.get("/api/memory", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_the_token_in_the_address_becomes_a_cookie(elsewhere: httpx.Client) -> None:
    response = elsewhere.get(f"/?token={TOKEN}")
    assert response.status_code == 303
    assert TOKEN not in response.headers["location"]
    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert elsewhere.get("/").status_code == 200
    assert elsewhere.post("/api/examples").status_code == 200


def test_with_a_token_another_page_still_cannot(elsewhere: httpx.Client) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}
    assert elsewhere.post("/api/examples", headers=headers).status_code == 403


def test_when_a_token_is_needed() -> None:
    assert choose_token("127.0.0.1", None) is None
    assert choose_token("::1", None) is None
    made_up = choose_token("0.0.0.0", None)
    assert made_up is not None
    assert len(made_up) >= 24
    assert choose_token("0.0.0.0", None) != made_up
    assert choose_token("127.0.0.1", TOKEN) == TOKEN
    with pytest.raises(InputError, match="8 or more plain characters"):
        choose_token("0.0.0.0", "short")


def test_a_token_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\nanything else")
    file.chmod(0o600)
    assert choose_token("127.0.0.1", None, file) == TOKEN
    with pytest.raises(InputError, match="not both"):
        choose_token("127.0.0.1", TOKEN, file)
    file.chmod(0o644)
    with pytest.raises(
        InputError, match=r"Others can read the token in .*: make it yours alone, by chmod 600\."
    ):
        choose_token("127.0.0.1", None, file)
    with pytest.raises(InputError, match=r"Cannot read the token in .*: No such file"):
        choose_token("127.0.0.1", None, tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is not a file"):
        choose_token("127.0.0.1", None, tmp_path / "pipe")


@pytest.mark.parametrize(
    "content", [b"", b"\n" + TOKEN.encode(), b"short", "ééééééééé".encode(), b"x" * (LONGEST + 1)]
)
def test_files_that_hold_no_token(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(InputError, match="8 or more plain characters"):
        choose_token("0.0.0.0", None, file)


def test_a_token_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    assert choose_token("127.0.0.1", None) == TOKEN
    assert choose_token("127.0.0.1", "another token") == "another token"
    monkeypatch.setenv(VARIABLE, "short")
    with pytest.raises(InputError, match="8 or more"):
        choose_token("127.0.0.1", None)


def test_what_is_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.5.5.5", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.2", "example.org", "localhost.example.org")))


def test_the_address_that_is_printed() -> None:
    assert address_of("127.0.0.1", 8000, None) == "http://127.0.0.1:8000/"
    assert address_of("::1", 80, TOKEN) == f"http://[::1]:80/?token={TOKEN}"
