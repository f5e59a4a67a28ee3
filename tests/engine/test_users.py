"""A server that knows its users."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tools.engine import Engine

from tests.helpers.indexes import keys_of, place_of
from vma.errors import InputError
from vma.index.milvus import MilvusIndex

KEYS = keys_of(50)


@pytest.fixture
def strict(only_engine: Engine, tmp_path: Path) -> Iterator[Engine]:
    """A server that wants a password, `root:Milvus` until that is changed; one at a time has room on a network."""
    only_engine.kill()
    other = Engine(tmp_path / "strict", ("--extra-config", "common.security.authorizationEnabled=true"))
    other.start()
    yield other
    other.kill()


def test_user_and_password_are_those_of_the_environment(
    strict: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vma.index.milvus_server.SECONDS", 5.0)
    place = place_of(tmp_path, KEYS, server=strict.uri)
    for wrong in ("", "root:wrong"):
        monkeypatch.setenv("VMA_INDEX_TOKEN", wrong)
        with pytest.raises(InputError, match="refuses this user: set VMA_INDEX_TOKEN to USER:PASSWORD"):
            MilvusIndex(place)
    monkeypatch.setattr("vma.index.milvus_server.SECONDS", 60.0)
    monkeypatch.setenv("VMA_INDEX_TOKEN", "root:Milvus")
    index = MilvusIndex(place)
    index.add(np.arange(50), KEYS, place.labels())
    assert index.count() == 50
    nowhere = place_of(tmp_path, KEYS, server=f"{strict.uri}/elsewhere")
    with pytest.raises(InputError, match="has no such database: create it there, or leave it out"):
        MilvusIndex(nowhere)
