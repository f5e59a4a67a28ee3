"""A cache of its own for every test; the real files only where `VMA_DATA` names them."""

import os
from pathlib import Path

import pytest

REAL_DATA = os.environ.get("VMA_DATA")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, and no folder of data."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("VMA_CACHE", str(folder))
    monkeypatch.delenv("VMA_DATA", raising=False)
    return folder


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that the tests on real files share, so that archives are decoded once."""
    return tmp_path_factory.mktemp("shared-cache")


@pytest.fixture
def real_data(own_cache: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of real files."""
    if not REAL_DATA:
        pytest.skip("VMA_DATA does not name a folder with the real datasets")
    monkeypatch.setenv("VMA_CACHE", str(shared_cache))
    return Path(REAL_DATA)
