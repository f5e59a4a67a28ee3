"""`vma serve`."""

import secrets
import socket
import webbrowser
from contextlib import suppress
from pathlib import Path
from threading import Thread

import platformdirs
import uvicorn
from fastapi import FastAPI
from tyro.conf import Positional

from vma.errors import InputError
from vma.fewshot import TrainedModel, load
from vma.pretrained import DEFAULT
from vma.runs.folder import default_root
from vma.serve.app import create_app
from vma.serve.guard import Access, is_loopback
from vma.serve.store import Store

SHORTEST_TOKEN = 8
EVERYWHERE = ("0.0.0.0", "::", "")  # hosts that stand for every address of this machine


def serve(
    model: Positional[Path | None] = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    memory: Path | None = None,
    token: str | None = None,
    browser: bool = True,
) -> None:
    """Open a local page to draw, remember, imagine and recognise. Nothing leaves this machine.

    Args:
        model: A run's folder, the file of a model, or the name of one in the box; the newest run by default, and
            without any run the default model in the box.
        host: Address to listen on. Any other than a loopback address asks for the token.
        port: Port to listen on; 0 for any that is free.
        memory: File that the memory is kept in; by default one in your data folder for each size of images.
        token: What a visitor has to know; made up and printed where one is needed and none is given.
        browser: Open the page in the browser.
    """
    token = choose_token(host, token)
    trained = newest_model(default_root()) if model is None else load(model)
    if trained.config.channels > 1:
        raise InputError(f"{trained.name} works in colour, and the page draws ink: choose another model.")
    with listen(host, port) as listening:
        store = Store(trained, (memory or default_memory(trained)).expanduser())
        port = listening.getsockname()[1]
        address = address_of(socket.gethostname() if host in EVERYWHERE else host, port, token)
        print(f"Model   {trained.name}\nMemory  {store.path}\nPage    {address}   (Ctrl-C ends)", flush=True)
        if browser:
            here = address_of("127.0.0.1" if host in EVERYWHERE else host, port, token)
            Thread(
                target=webbrowser.open, args=(here,), daemon=True
            ).start()  # some wait until they are closed
        run(create_app(store, Access.to(host, token)), listening)


def choose_token(host: str, token: str | None) -> str | None:
    """The token to ask for: none on a loopback address, unless one is given."""
    if token is None:
        return None if is_loopback(host) else secrets.token_urlsafe(24)
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise InputError(
            f"The token must have {SHORTEST_TOKEN} or more plain characters: leave it out to have one made up."
        )
    return token


def newest_model(root: Path) -> TrainedModel:
    """The model of the newest run that can remember images; without any, the default one in the box."""
    files = [*root.glob("*/model.safetensors"), *root.glob("*/vma/model.safetensors")]
    for file in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            found = load(file)
        except InputError:
            continue
        if found.config.channels == 1:
            return found
    return load(DEFAULT)


def default_memory(model: TrainedModel) -> Path:
    """Where the memory is kept: models of the same size and kind of images share it."""
    grey = "-grey" if model.config.likelihood == "categorical" else ""
    name = f"memory-{model.size[0]}x{model.size[1]}{grey}.safetensors"
    return platformdirs.user_data_path("variational-memory") / name


def listen(host: str, port: int) -> socket.socket:
    """A listening socket."""
    if not 0 <= port < 2**16:
        raise InputError(f"Cannot listen on port {port}: choose one from 0 to 65535.")
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputError(
            f"Cannot listen on {host}, port {port} ({error.strerror or error}): choose another --port, or 0 for "
            "any that is free."
        ) from None
    # Connections inherit this; asyncio sees to it only for sockets of its own, and a small answer would wait 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address_of(host: str, port: int, token: str | None) -> str:
    """The page's address, for a person."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")


def run(app: FastAPI, listening: socket.socket) -> None:
    """Serve until Ctrl-C."""
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=3)
    with suppress(
        KeyboardInterrupt
    ):  # not raised where a shell has told its background jobs to ignore Ctrl-C
        uvicorn.Server(config).run(sockets=[listening])
    print("Ended; the memory is kept.")
