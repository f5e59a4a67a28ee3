"""How much one request, and all of them together, may ask for."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import torch
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vma.serve.errors import refuse

ITEMS = 1000  # in memory
IMAGES = 64  # in one request
SIDE = 2048  # pixels of an image, each way
LABEL = 40  # characters
SAMPLES = 64  # imagined at a time
POINTS = 81  # varied at a time
BODY = 8 * 2**20  # bytes
BODIES = 8 * BODY  # bytes of all bodies at a time
BODY_SECONDS = 20.0  # that a body may take to arrive
UNDERWAY = 32  # requests with work to do, running or waiting
THREADS = 2  # that do it
BUSY = "The server is busy: try again in a moment."

P = ParamSpec("P")
R = TypeVar("R")


class Workers:
    """A few threads for slow work, and a short queue before them: more is refused at once.

    Each thread keeps torch to itself: two requests on two cores are quicker so than one request on both.
    """

    def __init__(self, threads: int = THREADS, underway: int = UNDERWAY) -> None:
        self.pool = ThreadPoolExecutor(threads, "vma", initializer=torch.set_num_threads, initargs=(1,))
        self.most, self.underway = underway, 0

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """`work(*args)` in a thread; 503 where too much is under way."""
        if self.underway >= self.most:
            raise HTTPException(503, BUSY, {"Retry-After": "1"})
        self.underway += 1
        try:
            return await asyncio.wrap_future(self.pool.submit(work, *args, **kwargs))
        finally:
            self.underway -= 1

    def close(self) -> None:
        """Let go of the threads; what waits is dropped."""
        self.pool.shutdown(wait=False, cancel_futures=True)


class BodyLimit:
    """Middleware that counts a body's bytes as they arrive, whatever its Content-Length says, and the seconds.

    Attributes:
        held: Bytes of all bodies that are arriving or being worked on now.
    """

    def __init__(
        self, app: ASGIApp, limit: int = BODY, total: int = BODIES, seconds: float = BODY_SECONDS
    ) -> None:
        self.app, self.limit, self.total, self.seconds = app, limit, total, seconds
        self.held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what is announced as too large; count the rest."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > self.limit:
            await refuse(413, self.too_large)(scope, receive, send)
            return
        body = Body(self, receive)
        try:
            await self.app(scope, body.next_message, send)
        finally:
            self.held -= body.size

    @property
    def too_large(self) -> str:
        """Why a body is refused."""
        return f"The request is larger than {self.limit / 2**20:g} MB: send less at a time."


class Body:
    """One body on its way in."""

    def __init__(self, limits: BodyLimit, receive: Receive) -> None:
        self.limits, self.receive = limits, receive
        self.size, self.complete = 0, False

    async def next_message(self) -> Message:
        """What `receive` gives, unless it is too much or too late."""
        seconds = None if self.complete else self.limits.seconds
        try:
            message = await asyncio.wait_for(self.receive(), seconds)
        except TimeoutError:
            raise HTTPException(408, f"The body took longer than {seconds:g} s: send it faster.") from None
        self.complete = not message.get("more_body", False)
        self.count(len(message.get("body", b"")))
        return message

    def count(self, size: int) -> None:
        """Add to this body's bytes, and to those of all."""
        self.size += size
        self.limits.held += size
        if self.size > self.limits.limit:
            raise HTTPException(413, self.limits.too_large)
        if self.limits.held > self.limits.total:
            raise HTTPException(503, BUSY, {"Retry-After": "1"})
