"""A crowd of clients of the page's server: most ask and wait, some are slow, some say nothing, some leave."""

import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from urllib.parse import urlsplit

from tests.helpers.served import BAR, CROSS, RING, drawing

SECONDS = 60.0  # that an answer may take
KINDS = {  # of clients, of a hundred
    "quick": 60, "slow sender": 10, "slow reader": 10, "silent": 10, "leaver": 10,
}  # fmt: skip
PICTURES = [drawing(strokes) for strokes in (RING, CROSS, BAR)]


@dataclass
class Outcome:
    """What the crowd met.

    Attributes:
        answers: Number of answers by kind of client and status; `ended` where the server ended the connection.
        seconds: How long quick clients waited for answers of 200.
        remembered: Labels of changes that were acknowledged.
        odd: What is neither an answer nor an end.
    """

    answers: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    remembered: set[str] = field(default_factory=set)
    odd: list[str] = field(default_factory=list)


def message(random: Random, number: int) -> tuple[str, bytes, str]:
    """A request, and the label that it wants remembered, if it does."""
    label = f"{number}-{random.getrandbits(40):x}"
    path, content = random.choice(
        [
            ("recognise", {"image": random.choice(PICTURES)}),
            ("imagine", {"count": 2}),
            ("remember", {"images": [random.choice(PICTURES)], "label": label}),
            ("memory", None),
        ]
    )
    if content is None:
        return path, b"GET /api/memory HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", ""
    body = json.dumps(content).encode()
    head = f"POST /api/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return (
        path,
        f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body,
        label if path == "remember" else "",
    )


async def read_answer(reader: asyncio.StreamReader, pause: float = 0.0) -> tuple[int, bytes]:
    """Status and body of an answer, read in small pieces with pauses where there are to be some."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        (
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        ),
        0,
    )
    body = b""
    while len(body) < length:
        piece = await reader.read(2048 if pause else length - len(body))
        if not piece:
            raise ConnectionError("an answer is cut")
        body += piece
        await asyncio.sleep(pause)
    return int(head.split()[1]), body


async def send(writer: asyncio.StreamWriter, content: bytes, pause: float) -> None:
    """Send a request, in ten pieces with pauses where there are to be some."""
    step = len(content) // 10 + 1 if pause else len(content)
    for start in range(0, len(content), step):
        writer.write(content[start : start + step])
        await writer.drain()
        await asyncio.sleep(pause)


async def visit(address: tuple[str, int], kind: str, random: Random, number: int, outcome: Outcome) -> None:
    """One connection with one request."""
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(*address), SECONDS)
    except TimeoutError:  # the system makes it wait before the server knows of it
        outcome.answers[f"{kind} not connected"] += 1
        return
    try:
        if kind == "silent":
            said = await reader.read()
            outcome.answers["silent told" if said else "silent ended"] += 1
            return
        path, content, label = message(random, number)
        begun = time.monotonic()
        await send(writer, content, 0.3 if kind == "slow sender" else 0.0)
        if kind == "leaver":
            outcome.answers["leaver left"] += 1
            return
        status, body = await read_answer(reader, 0.05 if kind == "slow reader" else 0.0)
        note(outcome, kind, path, status, body)
        if status == 200 and kind == "quick":
            outcome.seconds.append(time.monotonic() - begun)
        if status == 200 and label:
            outcome.remembered.add(label)
    finally:
        writer.close()


def note(outcome: Outcome, kind: str, path: str, status: int, body: bytes) -> None:
    """Write an answer down; what is not 200 has to be a sentence."""
    outcome.answers[f"{kind} {status}"] += 1
    if status == 200:
        return
    said = json.loads(body)
    full = status == 422 and "holds 1000 cards" in said["error"]
    empty = status == 422 and "empty" in said["error"]
    if set(said) != {"error"} or not said["error"].endswith(".") or not (status == 503 or full or empty):
        outcome.odd.append(f"{kind} {path} {status} {body[:200]!r}")


async def client(address: tuple[str, int], kind: str, number: int, end: float, outcome: Outcome) -> None:
    """Come again and again until the end."""
    random = Random(number)
    while time.monotonic() < end:
        try:
            await asyncio.wait_for(visit(address, kind, random, number, outcome), 2 * SECONDS)
        except TimeoutError:
            outcome.odd.append(f"{kind}: no answer within {2 * SECONDS:g} s")
        except (ConnectionError, asyncio.IncompleteReadError):
            outcome.answers[f"{kind} ended"] += 1
        await asyncio.sleep(random.random() * 2)


def kind_of(number: int) -> str:
    """The kind of the client of that number."""
    place = number * 37 % 100
    for kind, share in KINDS.items():
        if place < share:
            return kind
        place -= share
    raise AssertionError(place)


async def crowd(url: str, clients: int, seconds: float) -> Outcome:
    """All clients at once."""
    parts, outcome = urlsplit(url), Outcome()
    address, end = (str(parts.hostname), int(parts.port or 0)), time.monotonic() + seconds
    await asyncio.gather(*(client(address, kind_of(n), n, end, outcome) for n in range(clients)))
    return outcome
