"""Every public name has an example in its docstring, and every example gives what it says."""

import doctest
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import vma

NAMES = [name for name in vma.__all__ if name not in ("ESTIMATORS", "data", "parts")]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", NAMES)
def test_public_names_have_an_example_that_works(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.set_default_dtype(torch.float32)  # as a user has it
    known = {"vma": vma, "torch": torch, "np": np, "math": math}
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(vma, name), name, globs=known)
    assert example.examples, f"vma.{name} has no example"
    assert doctest.DocTestRunner(optionflags=OPTIONS).run(example).failed == 0
