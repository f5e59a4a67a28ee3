"""A model, a memory and a server of its own for every test."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

from tests.helpers.served import CROSS, RING, blurring_model, drawing
from vma.commands.serve import listen
from vma.fewshot import TrainedModel, load
from vma.serve import Access, Store, create_app
from vma.serve.connections import server_of
from vma.storage import save_model

HERE = Access.to("127.0.0.1", None)


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "blurring.safetensors"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        save_model(blurring_model(), path)
    return path


@pytest.fixture(scope="session")
def model(model_path: Path) -> TrainedModel:
    return load(model_path)


@pytest.fixture
def memory_path(tmp_path: Path) -> Path:
    return tmp_path / "memory.safetensors"


@pytest.fixture
def client(start: Callable[..., str], memory_path: Path) -> Iterator[httpx.Client]:
    """Someone who talks to a server."""
    with httpx.Client(base_url=start(memory_path), timeout=60) as client:
        yield client


@pytest.fixture
def two_cards(client: httpx.Client) -> httpx.Client:
    """A memory of a ring and a cross."""
    for label, strokes in (("ring", RING), ("cross", CROSS)):
        response = client.post("/api/remember", json={"images": [drawing(strokes)], "label": label})
        assert response.status_code == 200
    return client


@pytest.fixture
def start(model: TrainedModel) -> Iterator[Callable[..., str]]:
    """Start real servers on free ports; each call gives an address. All end with the test."""
    with ExitStack() as servers:
        yield lambda *args: servers.enter_context(running_server(model, *args))


@contextmanager
def running_server(model: TrainedModel, memory: Path, access: Access = HERE, **changes: Any) -> Iterator[str]:
    """The address of a server that runs meanwhile."""
    app = create_app(Store(model, memory), access)
    listening = listen("127.0.0.1", 0)
    server = server_of(app, log_level="critical", timeout_graceful_shutdown=1, **changes)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()


NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
PATIENCE = 30_000  # milliseconds, for a busy machine


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        reason = "there is no Chromium: install the package chromium of your distribution"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        expect.set_options(timeout=PATIENCE)
        yield browser
        browser.close()


def is_trouble(line: ConsoleMessage) -> bool:
    """Whether the console complains; not of a question about a card that was deleted while it waited."""
    late = "404 (Not Found)" in line.text and line.location["url"].endswith(("api/vary", "api/imagine"))
    return line.type in ("error", "warning") and not late


@pytest.fixture
def visit(browser: Browser, start: Callable[..., str], memory_path: Path) -> Iterator[Callable[..., Page]]:
    """Open the page of a fresh server; whatever the visitor does, nothing may leave it or go wrong unseen."""
    address = start(memory_path)
    asked: list[str] = []
    troubles: list[str] = []
    contexts = []

    def go(*, first: bool = False, **options: object) -> Page:
        context = browser.new_context(base_url=address, **options)
        if not first:
            context.add_init_script("localStorage.setItem('vma-steps-seen', '1')")
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda line: troubles.append(line.text) if is_trouble(line) else None)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto("/")
        expect(page.locator("#model")).to_contain_text("26×26")
        return page

    yield go
    for context in contexts:
        context.close()
    assert [line for line in troubles if "422 (Unprocessable" not in line] == []
    assert asked
    assert [url for url in asked if not url.startswith((address + "/", "blob:" + address))] == []
