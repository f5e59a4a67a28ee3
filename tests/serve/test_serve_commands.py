"""`vma serve` as a user starts it."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from vma import InputError, ModelConfig
from vma.build import build_vma
from vma.commands.serve import default_memory, listen, newest_model
from vma.fewshot import TrainedModel
from vma.pretrained import DEFAULT
from vma.serve.store import Store
from vma.storage import save_model


def put_run(folder: Path, model_path: Path, age: int) -> None:
    folder.mkdir(parents=True)
    shutil.copyfile(model_path, folder / "model.safetensors")
    os.utime(folder / "model.safetensors", (1e9 - age, 1e9 - age))


def test_without_any_run_the_model_in_the_box_is_served(tmp_path: Path) -> None:
    assert newest_model(tmp_path / "runs").name == DEFAULT


def test_the_newest_run_that_can_remember(tmp_path: Path, model_path: Path) -> None:
    put_run(tmp_path / "old", model_path, age=300)
    put_run(tmp_path / "quickstart-1" / "vma", model_path, age=200)
    assert newest_model(tmp_path).name == "quickstart-1"
    put_run(tmp_path / "new", model_path, age=100)
    assert newest_model(tmp_path).name == "new"
    (tmp_path / "vae").mkdir()
    save_model(
        build_vma(ModelConfig(family="mlp", hidden=(4,), learned_items=3)),
        tmp_path / "vae" / "model.safetensors",
    )
    assert newest_model(tmp_path).name == "new"


def test_a_memory_on_disk_is_refused_in_a_sentence(model: TrainedModel, tmp_path: Path) -> None:
    model.create_memory(tmp_path / "m")
    with pytest.raises(
        InputError, match="is a memory on disk, which the page cannot show: ask it by 'vma recog"
    ):
        Store(model, tmp_path / "m")


def test_the_memory_is_kept_for_each_size_of_images(model: TrainedModel) -> None:
    assert default_memory(model).name == "memory-26x26.safetensors"


def test_small_answers_do_not_wait_for_an_acknowledgement() -> None:
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()) as _:
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_is_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            InputError, match=rf"Cannot listen on 127.0.0.1, port {port} .*: choose another --port"
        ):
            listen("127.0.0.1", port)
    for port in (70_000, -1):
        with pytest.raises(InputError, match=r"Cannot listen on port .* from 0 to 65535"):
            listen("127.0.0.1", port)
    for host in ("no.such.host.invalid", "..", "x" * 99):
        with pytest.raises(InputError, match=r"Cannot listen on .*: choose another --host\.$"):
            listen(host, 0)


def test_a_server_from_the_shell_keeps_its_memory_when_killed_and_ends_with_ctrl_c(
    model_path: Path, tmp_path: Path
) -> None:
    memory = tmp_path / "folder" / "memory.safetensors"
    with started(model_path, memory) as (process, address):
        assert len(httpx.post(f"{address}api/examples", timeout=60).json()["cards"]) == 15
        process.kill()
    with started(model_path, memory) as (process, address):
        assert len(httpx.get(f"{address}api/memory", timeout=60).json()["cards"]) == 15
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert process.stdout.read() == "Ended; the memory is kept.\n"
        assert process.wait(60) == 0


@contextmanager
def started(model_path: Path, memory: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server as a process of its own, and its address."""
    script = "import tyro; from vma.commands.serve import serve; tyro.cli(serve)"
    options = ["--port", "0", "--no-browser", "--memory", str(memory)]
    with subprocess.Popen(
        [sys.executable, "-c", script, str(model_path), *options], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        _, memory_line, page_line = (process.stdout.readline() for _ in range(3))
        assert memory_line.split()[1] == str(memory)
        yield process, page_line.split()[1]
