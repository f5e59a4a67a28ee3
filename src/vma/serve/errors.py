"""One shape for everything that goes wrong: {"error": "one sentence"}, and no traces."""

import logging
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from vma.errors import InputError

LOG = logging.getLogger("vma.serve")
USUAL = {
    400: "The request cannot be read.",
    404: "There is nothing at this address.",
    405: "This address does not take that method.",
    500: "Something went wrong in the server; the memory is as it was.",
}


class UnknownCardError(InputError):
    """A card that is not in the memory, or no more."""


class StaleError(InputError):
    """A change of a memory that has changed since."""


def refuse(status: int, sentence: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An error as a response."""
    return JSONResponse({"error": sentence}, status, headers)


def handle_errors(app: FastAPI) -> None:
    """Give every error of `app` the one shape."""
    app.exception_handler(HTTPException)(on_http_error)
    app.exception_handler(RequestValidationError)(on_invalid)
    app.exception_handler(InputError)(on_mistake)
    app.exception_handler(ClientDisconnect)(on_leaving)
    app.exception_handler(Exception)(on_failure)


async def on_http_error(request: Request, error: HTTPException) -> JSONResponse:
    """What the framework or a limit refuses."""
    usual = USUAL.get(error.status_code, f"{HTTPStatus(error.status_code).phrase}.")
    sentence = error.detail if error.detail.endswith(".") else usual
    return refuse(error.status_code, sentence, dict(error.headers or {}))


async def on_invalid(request: Request, error: RequestValidationError) -> JSONResponse:
    """A body or a parameter of the wrong form: the first thing that is wrong with it."""
    return refuse(422, describe(error.errors()[0]))


def describe(problem: dict[str, Any]) -> str:
    """E.g. `count: Input should be less than or equal to 64.`"""
    where = ".".join(str(part) for part in problem["loc"][1:] if problem["type"] != "json_invalid")
    what = "The body is not JSON" if problem["type"] == "json_invalid" else str(problem["msg"])
    return f"{where}: {what}." if where else f"{what}."


async def on_mistake(request: Request, error: InputError) -> JSONResponse:
    """A user's mistake, in the words of whoever found it."""
    status = {UnknownCardError: 404, StaleError: 409}.get(type(error), 422)
    return refuse(status, str(error))


async def on_leaving(request: Request, error: ClientDisconnect) -> JSONResponse:
    """A client that leaves before all of its request has come; nobody hears the answer."""
    return refuse(400, USUAL[400])


async def on_failure(request: Request, error: Exception) -> JSONResponse:
    """A mistake of ours: the sentence to the client, the trace to the log."""
    LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return refuse(500, USUAL[500])
