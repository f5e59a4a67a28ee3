"""A real Milvus server for the tests of this folder, which `make test-engine` runs."""

import os
import subprocess
from collections.abc import Iterator
from itertools import count

import pytest
from tools.engine import Engine, installed

WANTED = "VMA_ENGINE"  # in the environment: start a server for these tests
NUMBERS = count()


@pytest.fixture(scope="session")
def only_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    if not os.environ.get(WANTED):
        pytest.skip("needs a Milvus server: 'make test-engine' installs one and runs this")
    try:
        installed()
    except subprocess.CalledProcessError as error:
        reason = f"there is no Milvus server for this machine, or it cannot be fetched: {error}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    engine = Engine(tmp_path_factory.mktemp("engine"))
    yield engine
    engine.kill()


@pytest.fixture
def engine(only_engine: Engine) -> Engine:
    """The server, which runs, whatever the test before has done to it."""
    if only_engine.process is None:
        only_engine.start()
    return only_engine


@pytest.fixture
def collection() -> str:
    """A name that no other test has used."""
    return f"vma_test_{next(NUMBERS)}"
