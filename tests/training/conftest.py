"""A cache of its own for glyphs, filled once."""

from pathlib import Path

import pytest

from vma.data import load_dataset


@pytest.fixture(scope="session", autouse=True)
def glyph_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Draw the glyphs before anything is timed, forked or killed."""
    load_dataset("glyphs", "train", size=16)
    return tmp_path_factory.getbasetemp()
