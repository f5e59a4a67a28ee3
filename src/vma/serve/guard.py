"""Who may ask: this machine alone, or whoever has the token."""

import hmac
import ipaddress
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vma.serve.errors import refuse

COOKIE = "vma-token"
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
        response.set_cookie(COOKIE, self.access.token or "", httponly=True, samesite="strict")
        return response


def host_name(host: str) -> str | None:
    """The name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname
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
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return cookie.value if cookie else None


def asked_token(scope: Scope) -> str | None:
    """The token in the address, `?token=`."""
    return parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=None).get("token", [None])[0]
