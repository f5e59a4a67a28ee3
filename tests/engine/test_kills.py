"""The server is killed: nothing acknowledged is lost, the client says so in a sentence, and goes on."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tools.engine import Engine

from tests.helpers.indexes import keys_of, place_of
from tests.helpers.large_folders import filled, some_rows
from vma.errors import InputError
from vma.index.milvus import MilvusIndex
from vma.large import Writer, open_snapshot
from vma.large.indexing import open_index, save_index, with_index
from vma.large.snapshot import Snapshot
from vma.large.verifying import nats_lost

KEYS = keys_of(3000)
GONE = r"^The Milvus server at http://127\.0\.0\.1:\d+ does not answer: start it, or say where it is by .*\.$"


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that waits until a killed server is there again, on a busy machine too."""
    monkeypatch.setattr("vma.index.milvus_server.SECONDS", 240.0)


def be_hasty(patch: pytest.MonkeyPatch) -> None:
    """A client soon gives up from now on."""
    patch.setattr("vma.index.milvus_server.SECONDS", 1.0)


@contextmanager
def killed_meanwhile(engine: Engine, moment: threading.Event) -> Iterator[None]:
    """Kill the server at a moment and start it again, while others go on."""

    def work() -> None:
        moment.wait()
        engine.kill()
        engine.start()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join()


def test_what_was_acknowledged_is_there_after_a_kill(
    engine: Engine, collection: str, tmp_path: Path, waiting: None
) -> None:
    place = place_of(tmp_path, KEYS, server=engine.uri, name=collection)
    index, labels = MilvusIndex(place), place.labels()
    index.add(np.arange(1000), KEYS[:1000], labels[:1000])
    index.delete(np.arange(0, 1000, 10))
    engine.kill()
    engine.start()
    left = sorted(set(range(1000)) - set(range(0, 1000, 10)))
    assert sorted(index) == left
    assert sorted(MilvusIndex(place)) == left
    index.add(np.arange(1000, 2000), KEYS[1000:2000], labels[1000:2000])
    assert index.count() == 1900


def test_a_client_goes_on_where_the_server_was_killed(
    engine: Engine, collection: str, tmp_path: Path, waiting: None
) -> None:
    place = place_of(tmp_path, KEYS, server=engine.uri, name=collection)
    index, labels, moment = MilvusIndex(place), place.labels(), threading.Event()
    with killed_meanwhile(engine, moment):
        for number, part in enumerate(np.array_split(np.arange(3000), 60)):
            index.add(part, KEYS[part], labels[part])
            if number == 20:
                moment.set()
    assert index.count() == 3000
    assert sorted(index) == list(range(3000))
    assert index.search(KEYS[::100], 1).addresses[:, 0].tolist() == list(range(0, 3000, 100))


def on_server(folder: Path, engine: Engine) -> Snapshot:
    """A memory whose index is on the server."""
    with Writer(folder) as writer:
        about = with_index(writer.snapshot, "milvus", engine.uri).manifest
        return writer.commit(index=about.index, server=about.server, collection=about.collection)


def test_making_an_index_stops_with_a_sentence_and_goes_on(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waiting: None
) -> None:
    snapshot = on_server(filled(tmp_path / "m", 900), engine)
    monkeypatch.setattr("vma.large.indexing.PART", 100)
    with monkeypatch.context() as patch:

        def kill(done: int, total: int) -> None:
            if done == 400:
                engine.kill()
                be_hasty(patch)

        with pytest.raises(InputError, match=GONE):
            open_index(snapshot, progress=kill)
    assert engine.process is None
    engine.start()
    index = open_index(open_snapshot(tmp_path / "m"))
    assert sorted(index) == list(range(900))
    save_index(snapshot, index)


def test_a_memory_keeps_what_its_server_missed(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waiting: None
) -> None:
    folder = filled(tmp_path / "m", 900)
    snapshot = on_server(folder, engine)
    save_index(snapshot, open_index(snapshot))
    engine.kill()
    with Writer(folder) as writer:
        writer.add(*some_rows(50, seed=4), ["new"] * 50)
        writer.forget([3, 4])
        writer.relabel([10], "other")
    snapshot = open_snapshot(folder)
    with monkeypatch.context() as patch:
        be_hasty(patch)
        with pytest.raises(InputError, match=GONE):
            open_index(snapshot)
    engine.start()
    index = open_index(snapshot)
    assert sorted(index) == snapshot.alive().tolist()
    other = snapshot.numbers["other"]
    monkeypatch.setattr("vma.index.protocol.FEW", 0)  # the server is asked, not the keys on disk
    assert index.search(snapshot.keys[np.array([10])], 2, label=other).addresses.tolist() == [[10, -1]]
    queries = 20 * snapshot.keys[np.arange(0, 950, 40)]
    lost = [nats_lost(snapshot, each, queries, 64) for each in (index, open_index(snapshot, "exact"))]
    np.testing.assert_allclose(*lost, atol=1e-4)
