"""Every public name has an example in its docstring, and every example gives what it says."""

import doctest
import importlib
import inspect
import math
import re
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
import torch

import vma
from tests.helpers.documents import ROOT
from tests.helpers.small_runs import fit, small
from tests.test_readme import symbols_and_a_model
from vma import ModelConfig
from vma.runs.folder import Run

ROOMS = (
    "vma", "vma.baselines", "vma.data", "vma.estimators", "vma.evaluation", "vma.export", "vma.fewshot",
    "vma.index", "vma.likelihoods", "vma.networks",
)  # fmt: skip
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def public(room: str) -> Iterator[tuple[str, object]]:
    """The classes and functions that a package offers."""
    package = importlib.import_module(room)
    for name in package.__all__:
        value = getattr(package, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            yield f"{room}.{name}", value


PUBLIC = {name: value for room in ROOMS for name, value in public(room)}


def example_of(name: str) -> doctest.DocTest:
    (example,) = doctest.DocTestFinder(recurse=False).find(PUBLIC[name], name, globs={})
    return example


EXAMPLES = [name for name in PUBLIC if example_of(name).examples]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What `vma.train` returned."""
    model = ModelConfig(height=16, width=16, family="mlp", hidden=(8, 6), latent=2, matching=4)
    return fit(small(model=model, updates=2), tmp_path_factory.mktemp("trained") / "run")


def test_the_reference_has_every_public_name() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "docs/api").glob("*.md"))
    listed = re.findall(r"^\.\. auto(\w+):: (\S+)$", pages, re.MULTILINE)
    modules = {name for what, name in listed if what == "module"}
    single = [reduce(getattr, name.split(".")[1:], vma) for what, name in listed if what == "function"]
    missing = [name for name, value in PUBLIC.items() if value.__module__ not in modules]
    assert [name for name in missing if PUBLIC[name] not in single] == []


def test_public_names_have_an_example() -> None:
    """Each has one of its own, or occurs in that of another name; results of evaluations are what these print."""
    shown = "".join(line.source + line.want for name in EXAMPLES for line in example_of(name).examples)
    assert [name for name in PUBLIC if name not in EXAMPLES and name.split(".")[-1] not in shown] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_works(name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    symbols_and_a_model(tmp_path)
    torch.set_default_dtype(torch.float32)  # as a user has it
    example = example_of(name)
    example.globs = {"vma": vma, "torch": torch, "np": np, "math": math, "Path": Path, "run": run}
    assert doctest.DocTestRunner(optionflags=OPTIONS).run(example).failed == 0
