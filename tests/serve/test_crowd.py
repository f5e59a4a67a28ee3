"""Many clients at once, slow ones, and ones that leave: the others are served, and no memory is lost."""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from starlette.exceptions import HTTPException

from tests.helpers.served import CROSS, RING, drawing
from tests.serve.conftest import running_server
from vma.fewshot import TrainedModel
from vma.serve.guard import BodyLimit, Workers
from vma.serve.store import Store

CLIENTS = 200
Answer = TypeVar("Answer")


def finished(question: Coroutine[Any, Any, Answer]) -> Answer:
    """What it comes to, in a thread of its own: a browser's loop may run in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, question).result()


def test_two_hundred_clients_at_once(
    start: Callable[..., str], memory_path: Path, model: TrainedModel
) -> None:
    address = start(memory_path)
    outcomes = finished(crowd(address))
    assert len(outcomes) == CLIENTS
    for status, body in outcomes:
        assert status in (200, 503)
        assert (set(body) == {"error"}) == (status == 503)
    remembered = sum(status == 200 and "version" in body for status, body in outcomes)
    assert remembered > 0
    state = httpx.get(f"{address}/api/memory").json()
    assert len(state["cards"]) == remembered + 1
    assert sorted(Counter(card["label"] for card in state["cards"]).values()) == [1] * (remembered + 1)
    assert httpx.post(f"{address}/api/imagine", json={}, timeout=60).status_code == 200
    copy = memory_path.with_name("copy.safetensors")
    copy.write_bytes(memory_path.read_bytes())
    store = Store(model, copy)
    assert list(store.now.contents.known().names) == [card["label"] for card in state["cards"]]
    store.close()


async def crowd(address: str) -> list[tuple[int, dict]]:
    """A third of the clients remember something, a third imagine, a third ask about a drawing."""
    limits = httpx.Limits(max_connections=CLIENTS)
    async with httpx.AsyncClient(base_url=address, timeout=120, limits=limits) as client:
        await client.post("/api/remember", json={"images": [drawing(RING)], "label": "first"})
        picture = drawing(CROSS)

        async def visit(number: int) -> tuple[int, dict]:
            questions = (
                ("remember", {"images": [picture], "label": f"card {number}"}),
                ("imagine", {"count": 4}),
                ("recognise", {"image": picture}),
            )
            path, message = questions[number % 3]
            response = await client.post(f"/api/{path}", json=message)
            return response.status_code, response.json()

        return await asyncio.gather(*(visit(number) for number in range(CLIENTS)))


def test_more_work_than_the_queue_holds_is_refused_at_once() -> None:
    async def overload() -> list[object]:
        workers, gate = Workers(threads=1, underway=3), threading.Event()
        waiting = [asyncio.create_task(workers.run(gate.wait)) for _ in range(5)]
        await asyncio.sleep(0)
        refused = [task for task in waiting if task.done() or (await asyncio.sleep(0)) or task.done()]
        assert len(refused) == 2
        gate.set()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert await workers.run(int, "7") == 7
        workers.close()
        return results

    results = finished(overload())
    assert results[:3] == [True] * 3
    assert [getattr(each, "status_code", None) for each in results[3:]] == [503, 503]


def test_slow_work_does_not_block_the_page(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.post("/api/examples")
    gate, begun = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        begun.set()
        gate.wait(30)
        raise ValueError

    monkeypatch.setattr("vma.serve.app.recognise", slow)
    question = {"image": drawing(RING)}
    asking = threading.Thread(target=lambda: client.post("/api/recognise", json=question))
    asking.start()
    assert begun.wait(30)
    with httpx.Client(base_url=client.base_url, timeout=30) as other:
        assert other.get("/").status_code == 200
        assert other.post("/api/imagine", json={"count": 1}).status_code == 200
        assert other.post("/api/remember", json={"images": [drawing(RING)], "label": "x"}).status_code == 200
    gate.set()
    asking.join()


def read_through(limits: BodyLimit, receive: Callable[[], Awaitable[dict]]) -> Awaitable[None]:
    """A request whose body comes from `receive`."""

    async def send(message: dict) -> None:
        raise AssertionError(message)

    return limits({"type": "http", "method": "POST", "path": "/", "headers": []}, receive, send)


def test_a_body_that_does_not_arrive_is_given_up() -> None:
    async def application(scope: dict, receive: Callable, send: Callable) -> None:
        await receive()

    async def never() -> dict:
        await asyncio.sleep(600)
        return {}

    with pytest.raises(HTTPException, match=r"took longer than 0\.01 s") as caught:
        finished(read_through(BodyLimit(application, seconds=0.01), never))
    assert caught.value.status_code == 408


def test_all_bodies_together_have_a_limit() -> None:
    """Two bodies of which each is small enough: the second waits for the first to be done with."""
    done = asyncio.Event()

    async def application(scope: dict, receive: Callable, send: Callable) -> None:
        await receive()
        await done.wait()

    async def some() -> dict:
        return {"type": "http.request", "body": b"x" * 60}

    async def meet() -> None:
        limits = BodyLimit(application, limit=100, total=100)
        first = asyncio.create_task(read_through(limits, some))
        await asyncio.sleep(0)
        with pytest.raises(HTTPException) as caught:
            await read_through(limits, some)
        assert caught.value.status_code == 503
        done.set()
        await first
        await read_through(limits, some)
        assert limits.held == 0

    finished(meet())


@pytest.mark.parametrize(
    "words",
    [
        b"GET /api/memory HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /api/imagine HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999999\r\n\r\n{",
        b"POST /api/imagine HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: " + b"a" * 100_000,
        b"GET /" + b"a" * 100_000,
    ],
)
def test_a_client_that_speaks_badly_and_leaves(client: httpx.Client, words: bytes) -> None:
    with socket.create_connection((client.base_url.host, client.base_url.port)) as connection:
        connection.sendall(words)
    assert client.get("/api/memory").status_code == 200
    assert client.post("/api/examples").status_code == 200


def test_a_restarted_server_has_the_memory(model: TrainedModel, memory_path: Path) -> None:
    labels = []
    for number in range(3):
        with running_server(model, memory_path) as address:
            message = {"images": [drawing(RING)], "label": f"run {number}"}
            assert httpx.post(f"{address}/api/remember", json=message).status_code == 200
            labels.append(f"run {number}")
            state = httpx.get(f"{address}/api/memory").json()
            assert [card["label"] for card in state["cards"]] == labels
