"""float64, seeds of its own, a cache of its own and untouched global state for every test."""

import os
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings

settings.register_profile("vma", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("vma")


@pytest.fixture(scope="session", autouse=True)
def own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep drawn glyphs and decoded images out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VMA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def own_torch_state() -> Iterator[None]:
    """Run in float64 from a fixed seed; fail if a test leaves grad mode or threads changed."""
    dtype, grad, threads = torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads()
    torch.set_default_dtype(torch.float64)
    with torch.random.fork_rng():
        torch.manual_seed(20170715)
        yield
    torch.set_default_dtype(dtype)
    assert torch.is_grad_enabled() == grad
    assert torch.get_num_threads() == threads


def pytest_configure(config: pytest.Config) -> None:
    """One thread per worker: two workers share two cores without fighting for them."""
    torch.set_num_threads(1 if "PYTEST_XDIST_WORKER" in os.environ else 2)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As compiled loops want it."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
