"""A Milvus server: its address, what it is asked, and its errors as sentences."""

import importlib
import logging
import os
import re
import time
from collections.abc import Iterator
from typing import Any, NoReturn
from urllib.parse import urlsplit

from vma.errors import InputError
from vma.index.protocol import check_server

pymilvus: Any = importlib.import_module("pymilvus")  # its own types say less than what there is
grpc: Any = importlib.import_module("grpc")
SERVER, TOKEN = "VMA_INDEX_SERVER", "VMA_INDEX_TOKEN"  # in the environment
OLDEST = (2, 3)  # which counts what there is by a query
SECONDS = 30.0  # that a server is waited for: time enough for one that is started anew
PAUSE = 0.5  # between two tries
LONGEST = 300  # characters of what a server says that are passed on
NOT_THERE, NO_DATABASE = 2, 800
NO_DATABASE_SAID = r"database:\S+ not found"  # by 2.3, which has no code for it
FINAL = {100, 700, 800, 1100, 1400, 1401}  # codes of what does not mend itself: names, arguments, rights


def address_of(server: str) -> str:
    """Where the server is: what the environment says, or else what the memory says."""
    chosen = os.environ.get(SERVER) or server
    if not chosen:
        raise InputError(
            "This index is on a server: say where with '--server http://HOST:19530' (vma memory build, vma memory "
            f"index), or set {SERVER}."
        )
    if urlsplit(check_server(chosen)).scheme not in ("http", "https"):
        raise InputError(f"{chosen} is not the address of a Milvus server: say http://HOST:19530, or https.")
    return chosen


class MilvusServer:
    """The server at an address, `http://HOST:PORT` or `http://HOST:PORT/DATABASE`.

    Its user and password, `USER:PASSWORD`, or its token are those of the environment (`VMA_INDEX_TOKEN`), and are
    written nowhere. A request that finds the server away is made again until `SECONDS` are over, so that all that
    is asked must be such that it may be asked twice.
    """

    def __init__(self, address: str) -> None:
        logging.getLogger("pymilvus").setLevel(
            logging.CRITICAL
        )  # which else writes pages for each of its errors
        self.address = address
        try:
            token = os.environ.get(TOKEN, "")
            self.client = pymilvus.MilvusClient(uri=address, token=token, timeout=SECONDS)
            self.check_version(str(self.client.get_server_version(timeout=SECONDS)))
        except (pymilvus.MilvusException, grpc.RpcError) as error:
            self.refuse(error)

    def check_version(self, version: str) -> None:
        """Refuse a server that is too old."""
        numbers = re.match(r"v?(\d+)\.(\d+)", version)
        if numbers is None or tuple(map(int, numbers.groups())) < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            raise InputError(
                f"The Milvus server at {self.address} is of version {version}, and {oldest} or later is needed: "
                "update it."
            )

    def ask(self, request: str, *arguments: Any, patience: float | None = None, **options: Any) -> Any:
        """What the server answers to a request, the name of a method of pymilvus' client.

        Something that takes long is given `patience`, in seconds, as long as the server is there.
        """
        begun = time.monotonic()
        while True:
            left = max(begun + SECONDS - time.monotonic(), PAUSE) if patience is None else SECONDS
            try:
                return getattr(self.client, request)(*arguments, timeout=left, **options)
            except (pymilvus.MilvusException, grpc.RpcError) as error:
                most = SECONDS if patience is None or is_away(error) else patience
                if code_of(error) in FINAL or time.monotonic() - begun + PAUSE >= most:
                    self.refuse(error)
            time.sleep(PAUSE)

    def pages(self, *arguments: Any, **options: Any) -> Iterator[list[dict[str, Any]]]:
        """What there is, in pieces."""
        pages = self.ask("query_iterator", *arguments, **options)
        try:
            while page := pages.next():
                yield page
        except (pymilvus.MilvusException, grpc.RpcError) as error:
            self.refuse(error)
        pages.close()

    def refuse(self, error: Exception) -> NoReturn:
        """Say in a sentence what happened, and what to do."""
        where, said = f"The Milvus server at {self.address}", text_of(error)
        if re.search("auth|privilege|permission", said, re.IGNORECASE):
            what = f"refuses this user: set {TOKEN} to USER:PASSWORD, or to a token that it knows."
        elif code_of(error) == NO_DATABASE or re.search(NO_DATABASE_SAID, said):
            what = "has no such database: create it there, or leave it out of the address."
        elif is_away(error):
            what = (
                f"does not answer: start it, or say where it is by {SERVER}; the items are in the memory's folder, "
                "and what the index lacks is added when it is opened again."
            )
        else:
            what = f"says: {said[:LONGEST]}"
        raise InputError(f"{where} {what}") from None


def code_of(error: Any) -> Any:
    """The code of an error of pymilvus or of gRPC."""
    return error.code() if isinstance(error, grpc.RpcError) else error.code


def text_of(error: Any) -> str:
    """What an error says, and what it came from: pymilvus calls every failed greeting a server that is away."""
    if isinstance(error, grpc.RpcError):
        return f"{error.code()} {error.details()}"
    cause = error.__cause__
    return f"{error.message} {text_of(cause)}" if isinstance(cause, grpc.RpcError) else str(error.message)


def is_away(error: Exception) -> bool:
    """Whether nobody answered."""
    away = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, NOT_THERE
    return code_of(error) in away or any(code.name in text_of(error) for code in away[:2])
