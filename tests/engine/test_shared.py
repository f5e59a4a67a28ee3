"""Memories that several processes make and ask, with their index on a server that may be away."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tools.engine import Engine

from tests.helpers.trained_models import drawings, trained
from vma.errors import InputError
from vma.fewshot import LargeMemory, TrainedModel
from vma.large import open_snapshot

COUNT = 90
AWAY = r"^The Milvus server at .* does not answer: start it, or say where it is by .*is opened again\.$"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
TWO = ("torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29561", "-m")


def vma(*arguments: object, launch: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """A command that has begun, in one process or by torchrun in two."""
    words = [sys.executable, "-m", *launch, "vma", *map(str, arguments)]
    return subprocess.Popen(words, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def said(command: subprocess.Popen[str], code: int = 0) -> str:
    """What a command says, which must end with this code."""
    out, errors = command.communicate(timeout=400)
    assert command.returncode == code, errors
    return out + errors


@pytest.fixture
def model(tmp_path: Path) -> TrainedModel:
    np.save(tmp_path / "symbols.npy", 255 * drawings(COUNT))
    np.save(tmp_path / "more.npy", 255 * drawings(30, seed=1))
    return trained(tmp_path / "run")


def both(model: TrainedModel, folder: Path) -> tuple[LargeMemory, LargeMemory]:
    """The memory, searched by the server and through all keys."""
    return tuple(
        LargeMemory(model.model, model.fingerprint, folder, index=name, candidates=64)
        for name in ("milvus", "exact")
    )  # type: ignore[return-value]


def check_answers(model: TrainedModel, folder: Path, items: int) -> None:
    """Whatever is asked, the server leads to the answers of a search through all keys."""
    ours, theirs = both(model, folder)
    assert ours.index.count() == len(ours) == items
    assert sorted(ours.index) == ours.snapshot.alive().tolist()
    x = list(255 * drawings(3, seed=7))
    for mine, other in zip(ours.recognise(x), theirs.recognise(x), strict=True):
        assert mine.label == other.label
        np.testing.assert_allclose(
            sorted(mine.probabilities.values()), sorted(other.probabilities.values()), atol=1e-4
        )
    mine, other = ours.explain(x[0], samples=8), theirs.explain(x[0], samples=8)
    assert mine.looked_at is not None
    np.testing.assert_array_equal(np.sort(mine.looked_at), np.sort(other.looked_at))
    np.testing.assert_allclose(np.sort(mine.q), np.sort(other.q), atol=1e-5)


def test_two_processes_build_together_and_go_on_when_the_server_is_there_again(
    engine: Engine, model: TrainedModel, tmp_path: Path
) -> None:
    m, build = tmp_path / "m", ["memory", "build", tmp_path / "symbols.npy", "--out", tmp_path / "m"]
    options = ["--model", tmp_path / "run", "--label", "a", "--index", "milvus", "--server", engine.uri]
    engine.kill()
    lines = said(vma(*build, *options, launch=TWO), 1).splitlines()
    sentences = [line for line in lines if line.startswith("vma: ")]
    assert len(sentences) == 1
    assert "does not answer: start it" in sentences[0]
    assert "the items are in the memory's folder" in sentences[0]
    assert len(open_snapshot(m)) == COUNT
    engine.start()
    assert f"0 new items; {m} holds {COUNT}." in said(vma(*build, *options, launch=TWO))
    check_answers(model, m, COUNT)
    add = ["memory", "add", m, tmp_path / "more.npy", "--model", tmp_path / "run", "--label", "b"]
    assert f"30 new items; {m} holds {COUNT + 30}." in said(vma(*add, launch=TWO))
    said(vma("memory", "forget", m, 3, COUNT + 10))
    check_answers(model, m, COUNT + 28)
    shown = said(vma("memory", "verify", m, "--model", tmp_path / "run"))
    assert f"index milvus: {COUNT + 28} items, 0.0000 nats lost" in shown
    assert f"server    {engine.uri}, collection vma_" in said(vma("memory", "info", m))


def test_who_has_a_memory_open_goes_on_when_the_server_is_killed(
    engine: Engine, model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = model.create_memory(tmp_path / "m", index="milvus", server=engine.uri)
    memory.add(list(255 * drawings(40)), "a")
    assert memory.index.count() == 40
    engine.kill()
    with monkeypatch.context() as patch:
        patch.setattr("vma.index.milvus_server.SECONDS", 1.0)
        with pytest.raises(InputError, match=AWAY):
            memory.forget([0])
        memory.add(list(255 * drawings(5, seed=1)), "b")  # needs no server until somebody asks
        with pytest.raises(InputError, match=AWAY):
            memory.recognise(255 * drawings(1)[0])
        assert len(memory) == 44  # what was told to the folder is there
    engine.start()
    monkeypatch.setattr("vma.index.milvus_server.SECONDS", 240.0)
    assert memory.recognise(255 * drawings(1)[0])[0].label == "a"
    check_answers(model, tmp_path / "m", 44)


def test_of_two_writers_one_is_refused_and_nothing_is_lost(
    engine: Engine, model: TrainedModel, tmp_path: Path
) -> None:
    memory = model.create_memory(tmp_path / "m", index="milvus", server=engine.uri)
    memory.add(list(255 * drawings(40)), "a")
    memory.save_index()
    for number in range(2):
        np.save(tmp_path / f"{number}.npy", 255 * drawings(70, seed=number + 2))
    commands = [
        vma("memory", "add", tmp_path / "m", tmp_path / f"{number}.npy", "--model", tmp_path / "run")
        for number in range(2)
    ]
    for number, command in enumerate(commands):
        _, errors = command.communicate(timeout=400)
        if command.returncode:  # both may also have found their moments
            assert "is being changed by another process: wait until that is done" in errors
            again = [tmp_path / "m", tmp_path / f"{number}.npy", "--model", tmp_path / "run"]
            said(vma("memory", "add", *again))
    check_answers(model, tmp_path / "m", 180)
