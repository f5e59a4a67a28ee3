"""Who may ask: this machine alone, or whoever has the token."""

import asyncio
import hmac
import ipaddress
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ParamSpec, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import torch
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vma.serve.errors import refuse

COOKIE = "vma-token"
LONGEST = (
    4096  # characters of a cookie, an address or a token that is looked at: what is longer is none of ours
)
FIELDS = 16  # of an address
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """Who may ask.

    Attributes:
        hosts: Names under which the server may be addressed, against pages that let a name of their own point
            to this machine (DNS rebinding); None for any, which only a token makes safe.
        token: What every request has to bring; None on a loopback address.
    """

    hosts: frozenset[str] | None
    token: str | None = None

    @staticmethod
    def to(host: str, token: str | None) -> "Access":
        """The rules for a server bound to `host`."""
        return Access(
            frozenset({"localhost", "127.0.0.1", "::1", host}) if is_loopback(host) else None, token
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """Middleware that checks Host, Origin and token before anything else, and dresses every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request here if it is refused or brings the token; else pass it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await (self.answer(scope) or self.app)(scope, receive, dressed)

    def answer(self, scope: Scope) -> Response | None:
        """A refusal, or the way in for someone who brings the token for the first time."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.access.hosts is not None and host_name(host) not in self.access.hosts:
            return refuse(403, "This server answers to its own address only: open the one that it printed.")
        if scope["method"] not in ("GET", "HEAD") and not same_origin(headers.get("origin"), host):
            return refuse(403, "Another page may not change this memory.")
        if self.access.token is None or self.knows(token_of(headers)):
            return None
        if scope["path"] == "/" and self.knows(asked_token(scope)):
            return self.let_in()
        return refuse(
            401, "This server needs its token: open the address that it printed, with its ?token= part."
        )

    def knows(self, token: str | None) -> bool:
        """Whether this is the token, compared in constant time."""
        return token is not None and hmac.compare_digest(token.encode(), (self.access.token or "").encode())

    def let_in(self) -> Response:
        """The page without the token in its address; a cookie brings it from now on."""
        response = RedirectResponse("./", 303)
        response.set_cookie(COOKIE, quote(self.access.token or "", safe=""), httponly=True, samesite="strict")
        return response


def host_name(host: str) -> str | None:
    """The name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname if len(host) <= LONGEST else None
    except ValueError:
        return None


def same_origin(origin: str | None, host: str) -> bool:
    """Whether the page that asks came from here; programs other than browsers name no origin."""
    return origin is None or origin in (f"http://{host}", f"https://{host}")


def token_of(headers: Headers) -> str | None:
    """The token that a request brings as `Authorization: Bearer` or as a cookie."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token
    return cookie_of(headers.get("cookie", ""))


def cookie_of(header: str) -> str | None:
    """The token in a Cookie header, taken apart at its semicolons alone, and not at all if it is long."""
    if len(header) > LONGEST:
        return None
    pairs = (pair.strip().partition("=") for pair in header.split(";"))
    return next((unquote(value) for name, _, value in pairs if name == COOKIE), None)


def asked_token(scope: Scope) -> str | None:
    """The token in the address, `?token=`."""
    query = scope["query_string"].decode("latin-1")
    if len(query) > LONGEST or query.count("&") >= FIELDS:
        return None
    return dict(parse_qsl(query)).get("token")


ITEMS = 1000  # in memory
IMAGES = 64  # in one request
SIDE = 2048  # pixels of an image, each way
LABEL = 40  # characters
SAMPLES = 64  # imagined at a time
POINTS = 81  # varied at a time
BODY = 8 * 2**20  # bytes
MESSAGE = 2**20  # bytes of a message without pictures
LARGE = ("/api/remember", "/api/keep", "/api/recognise", "/api/memory/file")  # what takes more than a message
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
        limit = self.limit if scope["path"] in LARGE else min(MESSAGE, self.limit)
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > limit:
            await refuse(413, too_large(limit))(scope, receive, send)
            return
        body = Body(self, receive, limit)
        try:
            await self.app(scope, body.next_message, send)
        finally:
            self.held -= body.size


def too_large(limit: int) -> str:
    """Why a body is refused."""
    return f"The request is larger than {limit / 2**20:g} MB: send less at a time."


class Body:
    """One body on its way in: all of it has to be here `limits.seconds` after the first of it is asked for."""

    def __init__(self, limits: BodyLimit, receive: Receive, limit: int) -> None:
        self.limits, self.receive, self.limit = limits, receive, limit
        self.size, self.complete = 0, False
        self.end: float | None = None

    async def next_message(self) -> Message:
        """What `receive` gives, unless it is too much or too late."""
        try:
            message = await asyncio.wait_for(self.receive(), None if self.complete else self.seconds_left())
        except TimeoutError:
            sentence = f"The body took longer than {self.limits.seconds:g} s: send it faster."
            raise HTTPException(408, sentence, {"Connection": "close"}) from None
        self.complete = not message.get("more_body", False)
        self.count(len(message.get("body", b"")))
        return message

    def seconds_left(self) -> float:
        """Until all of it has to be here."""
        now = asyncio.get_running_loop().time()
        self.end = self.end or now + self.limits.seconds
        return max(0.0, self.end - now)

    def count(self, size: int) -> None:
        """Add to this body's bytes, and to those of all."""
        self.size += size
        self.limits.held += size
        if self.size > self.limit:
            raise HTTPException(413, too_large(self.limit))
        if self.limits.held > self.limits.total:
            raise HTTPException(503, BUSY, {"Retry-After": "1"})
