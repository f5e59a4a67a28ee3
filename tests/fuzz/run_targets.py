"""Attacks on models, checkpoints, memories, settings and the files of a run."""

import random
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec
import torch

from tests.fuzz.batches import SHARED_MEMORY
from tests.fuzz.mutation import mutated
from tests.fuzz.structured import as_json, mutated_json, mutated_tensors
from tests.fuzz.target import Target
from tests.helpers.oracles import episode, small_mlp
from tests.helpers.small_runs import SMALLER, fit, small
from vma.build import build_vma
from vma.commands.training import run_row
from vma.fewshot.trained import TrainedModel, load
from vma.generative_model import GenerativeModel
from vma.runs.belonging import complaints_of, file_to_resume, is_trained
from vma.runs.checkpoint import load_checkpoint
from vma.runs.folder import Run, settings_from
from vma.runs.settings import SleepSettings
from vma.storage import load_model, save_model
from vma.training.optimiser import build_optimisers

FINITE = 1e30  # what a bound of weights that are finite may at most be
SLEPT = small(updates=10, model=SMALLER, sleep=SleepSettings(share=0.4, dreams=4))


@cache
def originals() -> Path:
    """Where the right files are."""
    return Path(mkdtemp(prefix="vma-fuzz-", dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None))


def clean_up() -> None:
    """Delete them."""
    shutil.rmtree(originals(), ignore_errors=True)


@cache
def original() -> Run:
    """A run that has slept, and is never changed."""
    return fit(SLEPT, originals() / "original")


@cache
def trained() -> TrainedModel:
    """A model that remembers images of 4×4 pixels."""
    torch.manual_seed(0)
    save_model(build_vma(small_mlp()).float(), originals() / "small.safetensors")
    return load(originals() / "small.safetensors")


@cache
def memory_content() -> bytes:
    """The file of a memory of that model."""
    images = torch.rand(5, 4, 4, generator=torch.Generator().manual_seed(0)).numpy()
    return trained().remember(images, ["a", "b", "a", None, "c"]).to_bytes()


def put(path: Path, content: bytes) -> Path:
    """A file with that content."""
    path.write_bytes(content)
    return path


def make_model(chance: random.Random) -> bytes:
    """The file of a model, mutated."""
    trained()
    return mutated_tensors((originals() / "small.safetensors").read_bytes(), chance, "config")


def use_model(content: bytes, folder: Path) -> None:
    """Load it, and ask for a bound."""
    model = load_model(put(folder / "model.safetensors", content))
    x, memory = episode(model.config, 2, 3)
    like = next(model.parameters())
    bound = model.bound(x.to(like.dtype), None if memory is None else memory.to(like), 2)
    assert not bool(bound.isnan().any()) or float(max(p.abs().max() for p in model.parameters())) > FINITE


def make_memory(chance: random.Random) -> bytes:
    """The file of a memory, mutated."""
    return mutated_tensors(memory_content(), chance, "labels")


def use_memory(content: bytes, folder: Path) -> None:
    """Open it, and ask which class an image is of."""
    memory = trained().open_memory(put(folder / "memory.safetensors", content))
    memory.recognise(memory.items[0].numpy(), by="address")


def make_settings(chance: random.Random) -> Any:
    """Settings as plain values, mutated."""
    return mutated_json(msgspec.to_builtins(SLEPT), chance)


def make_run(chance: random.Random) -> tuple[str, bytes]:
    """A file of a run, mutated."""
    names = ("settings_file", "metrics_file", "checkpoint_file", "sleep_file", "model_file")
    file: Path = getattr(original(), chance.choice(names))
    content = file.read_bytes()
    if file.suffix == ".safetensors":
        return file.name, mutated_tensors(content, chance)
    if file.suffix == ".json" and chance.random() < 0.5:
        return file.name, as_json(mutated_json(msgspec.json.decode(content), chance))
    return file.name, mutated([content], str(chance.random()))


def use_settings(values: Any, folder: Path) -> None:
    """Read them as those of a run."""
    settings_from(values)


def use_run(given: tuple[str, bytes], folder: Path) -> None:
    """List it, and say what it would go on from; whatever is wrong with one file, the others are shown."""
    name, content = given
    run = Run(folder / "run")
    if not run.folder.exists():
        shutil.copytree(original().folder, run.folder)
    put(run.folder / name, content)
    try:
        row, _ = run_row(run)
        assert len(row) == 6
        complaints_of(run)
        is_trained(run)
        file_to_resume(run)
    finally:
        shutil.copyfile(original().folder / name, run.folder / name)


def make_checkpoint(chance: random.Random) -> bytes:
    """A checkpoint, mutated."""
    return mutated_tensors(original().checkpoint_file.read_bytes(), chance)


@cache
def untrained() -> dict[str, GenerativeModel]:
    """The models of a run before its checkpoint is read, which fills them as a whole."""
    return {name: build_vma(SLEPT.model).float() for name in ("model", "average")}


def use_checkpoint(content: bytes, folder: Path) -> None:
    """Go on from it, up to the first step of the optimisers."""
    models = untrained()
    model = models["model"]
    optimisers = build_optimisers(model, SLEPT.optimiser)
    load_checkpoint(
        put(folder / "checkpoint.safetensors", content), models, optimisers, torch.zeros(9).double()
    )
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    for optimiser in optimisers:
        optimiser.step()


TARGETS = (
    Target("model", make_model, use_model, 21),
    Target("memory", make_memory, use_memory, 22),
    Target("settings", make_settings, use_settings, 100),
    Target("run", make_run, use_run, 21),
    Target("checkpoint", make_checkpoint, use_checkpoint, 21),
)
