"""Connections: how many there may be, how fast they have to speak, and what is said to those that are refused.

uvicorn serves whoever connects, for as long as they like to stay. Here a connection without a request has a
deadline, and where all places are taken, the one that has been silent for longest makes room.
"""

import asyncio
import json
import logging
import time
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from vma.serve.guard import BUSY, HEADERS, is_loopback

CONNECTIONS = 512  # in all
PER_CLIENT = 64  # from one address that is not this machine's: a program here may speak for many
REFUSED = 128  # that are listened to while they read why
BACKLOG = 128  # that wait to be accepted
HEADER = 2**14  # bytes of a request before its body
HEADER_SECONDS = 10.0  # from a connection, or the answer before, to the end of a request's header
SILENT_SECONDS = 1.0  # after which a connection without a request makes room for others
LINGER_SECONDS = 2.0  # for the last words of a connection to be read
TAKING_SECONDS = 60.0  # that a client may take for an answer
RECORDS, RECORD_SECONDS = 20, 60.0  # of the log, at most
LOGGERS = ("uvicorn.error", "asyncio", "vma.serve")


class Connection(H11Protocol):
    """One connection, with deadlines.

    Attributes:
        since: When it began to wait for the request that is not here yet.
        refused: Whether its last words have been said.
        deadline: Ends the wait for a request.
        taking: Ends the wait for a client that does not take its answer.
    """

    most, per_client = CONNECTIONS, PER_CLIENT
    header_seconds, silent_seconds = HEADER_SECONDS, SILENT_SECONDS
    linger_seconds, taking_seconds = LINGER_SECONDS, TAKING_SECONDS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, if there is one."""
        super().connection_made(transport)
        self.since, self.refused = self.loop.time(), False
        self.deadline: asyncio.TimerHandle | None = None
        self.taking: asyncio.TimerHandle | None = None
        if self.finds_room():
            self.watch()
        else:
            self.refuse(503, BUSY)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        stop(self.deadline)
        stop(self.taking)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless nothing more is wanted."""
        if not self.refused:
            super().data_received(data)
            self.watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.since = self.loop.time()
        super().on_response_complete()
        self.watch()

    def pause_writing(self) -> None:
        """The client does not take its answer as fast as it is given."""
        super().pause_writing()
        stop(self.taking)
        self.taking = self.loop.call_later(self.taking_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has taken most of the answer."""
        super().resume_writing()
        stop(self.taking)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        self.refuse(400, "The request cannot be read.")

    # Places

    def is_silent(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def finds_room(self) -> bool:
        """Whether there is a place, or another connection has been silent for so long that it gives up its own."""
        others = [each for each in self.connections if isinstance(each, Connection) and each is not self]
        placed = [each for each in others if not each.refused]
        own = [] if is_local(self) else [each for each in placed if same_client(each, self)]
        if len(placed) < self.most and len(own) < self.per_client:
            return True
        crowd = own if len(own) >= self.per_client else placed
        latest = self.loop.time() - self.silent_seconds
        silent = [each for each in crowd if each.is_silent() and each.since < latest]
        if silent:
            min(silent, key=lambda each: each.since).make_way()
        return bool(silent)

    def make_way(self) -> None:
        """End for another's sake, with a word to whoever has not been answered yet."""
        if self.cycle is None:
            self.refuse(503, BUSY)
        else:
            self.give_up(503, BUSY)

    # Deadlines

    def watch(self) -> None:
        """Let the deadline run while there is no request."""
        if not self.is_silent() or self.refused or self.transport.is_closing():
            stop(self.deadline)
            self.deadline = None
        elif self.deadline is None:
            self.deadline = self.loop.call_later(self.header_seconds, self.come_to_an_end)

    def come_to_an_end(self) -> None:
        """The deadline has passed."""
        self.give_up(408, f"The header took longer than {self.header_seconds:g} s: send it faster.")

    def give_up(self, status: int, sentence: str) -> None:
        """End, with a word to whoever has begun to ask."""
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self.refuse(status, sentence)
            return
        self.refused = True
        self.transport.close()
        self.loop.call_later(self.linger_seconds, self.transport.abort)

    def refuse(self, status: int, sentence: str) -> None:
        """Say why, and listen no more; a client that is still sending can read it before the connection ends."""
        self.refused = True
        crowded = sum(isinstance(each, Connection) and each.refused for each in self.connections) > REFUSED
        if crowded or self.transport.is_closing():
            self.transport.abort()
            return
        with suppress(OSError):  # whoever has left hears nothing
            self.transport.write(last_words(status, sentence))
            if self.transport.can_write_eof():
                self.transport.write_eof()
        self.loop.call_later(self.linger_seconds, self.transport.abort)


def stop(timer: asyncio.TimerHandle | None) -> None:
    """Cancel a timer, if there is one."""
    if timer is not None:
        timer.cancel()


def same_client(one: H11Protocol, other: H11Protocol) -> bool:
    """Whether two connections come from one address."""
    return one.client is not None and other.client is not None and one.client[0] == other.client[0]


def is_local(connection: H11Protocol) -> bool:
    """Whether a connection comes from this machine."""
    return connection.client is None or is_loopback(connection.client[0])


def last_words(status: int, sentence: str) -> bytes:
    """A whole answer, for a connection that ends with it."""
    body = json.dumps({"error": sentence}).encode()
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **({"Retry-After": "1"} if status == 503 else {}),
        **HEADERS,
    }
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        *(f"{name}: {headers[name]}" for name in headers),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Sparing(logging.Filter):
    """Lets few records a minute through, so that nobody can fill the disk by what is said of them.

    Attributes:
        records: How many, of one minute.
        seconds: The length of that minute.
    """

    def __init__(self, records: int = RECORDS, seconds: float = RECORD_SECONDS) -> None:
        super().__init__()
        self.records, self.seconds = records, seconds
        self.count, self.end = 0, 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this record is within the number; the last one that is let through says so."""
        now = time.monotonic()
        if now >= self.end:
            self.count, self.end = 0, now + self.seconds
        self.count += 1
        if self.count == self.records:
            record.msg, record.args = f"{record.getMessage()} (No more is said for a while.)", None
        return self.count <= self.records


def server_of(app: ASGIApp, **changes: Any) -> uvicorn.Server:
    """The server of an application, with all limits."""
    settings: dict[str, Any] = {
        "http": Connection,
        "ws": "none",
        "log_level": "warning",
        "access_log": False,
        "backlog": BACKLOG,
        "h11_max_incomplete_event_size": HEADER,
        "proxy_headers": False,
        "server_header": False,
        "timeout_graceful_shutdown": 3,
        **changes,
    }
    server = uvicorn.Server(uvicorn.Config(app, **settings))
    sparing = Sparing()
    for name in LOGGERS:
        logger = logging.getLogger(name)
        for old in [each for each in logger.filters if isinstance(each, Sparing)]:
            logger.removeFilter(old)
        logger.addFilter(sparing)
    return server
