"""A model, a memory and a server of its own for every test."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import torch
import uvicorn

from tests.helpers.served import CROSS, RING, blurring_model, drawing
from vma.commands.serve import listen
from vma.fewshot import TrainedModel, load
from vma.serve import Access, Store, create_app
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
def running_server(model: TrainedModel, memory: Path, access: Access = HERE) -> Iterator[str]:
    """The address of a server that runs meanwhile."""
    app = create_app(Store(model, memory), access)
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()
