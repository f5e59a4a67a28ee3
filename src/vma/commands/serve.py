"""`vma serve`."""

import socket
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from threading import Thread

import platformdirs
from fastapi import FastAPI
from tyro.conf import Positional

from vma.errors import InputError
from vma.fewshot import TrainedModel, load
from vma.files import at_home, said
from vma.pretrained import DEFAULT
from vma.python_version import known_holes
from vma.runs.folder import default_root
from vma.serve.app import create_app
from vma.serve.connections import server_of
from vma.serve.guard import Access
from vma.serve.store import Store
from vma.serve.token import choose_token

EVERYWHERE = ("0.0.0.0", "::", "")  # hosts that mean every address of this machine


def serve(
    model: Positional[Path | None] = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    memory: Path | None = None,
    token: str | None = None,
    token_file: Path | None = None,
    browser: bool = True,
    static: Path | None = None,
) -> None:
    """Open a local page to draw, remember, imagine and recognise. Nothing leaves this machine.

    Args:
        model: A run's folder, the file of a model, or the name of one in the box; the newest run by default, and
            without any run the default model in the box.
        host: Address to listen on. Any other than a loopback address asks for the token.
        port: Port to listen on; 0 for any that is free.
        memory: File that the memory is kept in; by default one in your data folder for each size of images.
        token: What a visitor has to know; made up and printed where one is needed and none is given. Whoever uses
            this machine can see it in the list of processes: --token-file and the variable VMA_TOKEN are for that.
        token_file: File whose first line is the token; nobody else may be able to read it.
        browser: Open the page in the browser; never where a token is asked for, for the same reason.
        static: Serve nothing; write the page into this folder as plain files that work in the browser alone, from
            any web server.
    """
    trained = model_to_draw_with(model)
    if static is not None:
        write_page(trained, static.expanduser())
        return
    token = choose_token(host, token, token_file)
    if holes := known_holes():
        print(f"vma serve: {holes}", file=sys.stderr)
    with listen(host, port) as listening:
        store = Store(trained, at_home(memory or default_memory(trained)))
        port = listening.getsockname()[1]
        address = address_of(socket.gethostname() if host in EVERYWHERE else host, port, token)
        print(f"Model   {trained.name}\nMemory  {store.path}\nPage    {address}   (Ctrl-C ends)", flush=True)
        if browser and token is None:
            # In a thread, because some browsers return only when they are closed.
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        run(create_app(store, Access.to(host, token)), listening)


def model_to_draw_with(model: Path | None) -> TrainedModel:
    """The model that is named, or the newest one; it must work on ink."""
    trained = newest_model(default_root()) if model is None else load(model)
    if trained.config.channels > 1:
        raise InputError(f"{trained.name} works in colour, and the page draws ink: choose another model.")
    return trained


def write_page(model: TrainedModel, folder: Path) -> None:
    """Write the page as plain files, and print what to do with them."""
    from vma.serve.static_page import write_static  # here, since onnx is an extra

    write_static(model, folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    print(f"{folder}: the page with {model.name}, {size:.0f} MB in plain files for any web server", end="; ")
    print(f"to look at it: python -m http.server --directory {folder}")


def newest_model(root: Path) -> TrainedModel:
    """The model of the newest run that can remember images, or else the default model in the box."""
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
    """The file of the memory; models with images of the same size and kind share it."""
    grey = "-grey" if model.config.likelihood == "categorical" else ""
    name = f"memory-{model.size[0]}x{model.size[1]}{grey}.safetensors"
    return platformdirs.user_data_path("variational-memory") / name


def listen(host: str, port: int) -> socket.socket:
    """A listening socket."""
    if not 0 <= port < 2**16:
        raise InputError(f"Cannot listen on port {port}: choose one from 0 to 65535.")
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:  # UnicodeError: a host with an empty or an overlong part
        raise InputError(f"Cannot listen on {host} ({said(error)}): choose another --host.") from None
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputError(
            f"Cannot listen on {host}, port {port} ({said(error)}): choose another --port, or 0 for "
            "any that is free."
        ) from None
    # Connections inherit this; asyncio sets it only on its own sockets. Without it, a small answer waits for 40 ms.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address_of(host: str, port: int, token: str | None) -> str:
    """The page's address, for the user."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + (f"?token={token}" if token else "")


def run(app: FastAPI, listening: socket.socket) -> None:
    """Serve until Ctrl-C."""
    with suppress(
        KeyboardInterrupt
    ):  # not raised where a shell has told its background jobs to ignore Ctrl-C
        server_of(app).run(sockets=[listening])
    print("Ended; the memory is kept.")
