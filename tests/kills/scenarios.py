"""What is killed: training and sleep, an evaluation, memories of three kinds; and what must be left.

A child does the work and says what it has done, as soon as it is done: that is acknowledged. After each kill its
parent checks that nothing acknowledged is lost, and in the end that the result is that of an unbroken run.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from tests.helpers.oracles import small_mlp
from tests.helpers.small_runs import CHILDREN, SMALLER, attempt, losses, small
from vma.build import build_vma
from vma.evaluation.answers import answer
from vma.evaluation.episodes import NllOptions, nll
from vma.evaluation.trained_run import open_run
from vma.fewshot import LargeMemory, building
from vma.fewshot.trained import TrainedModel, load
from vma.large import is_large, open_snapshot
from vma.large.verifying import check_files
from vma.masses import SCALE
from vma.runs.belonging import complaints_of, is_trained, model_progress
from vma.runs.checkpoint import latest_progress, read_progress
from vma.runs.folder import Run
from vma.runs.processes import Processes
from vma.runs.settings import SleepSettings, TrainSettings
from vma.serve.store import Store
from vma.storage import load_model, save_model

# All that a child would else import at its first step: with it, work begins within a fraction of a second.
CHILDREN.set_forkserver_preload(["tests.kills.scenarios", "vma.index.embedded", "torch._dynamo"])
Say = Callable[[str], None]
SETTINGS = small(updates=40, model=SMALLER, sleep=SleepSettings(share=0.4, dreams=8))
ITEMS = 60  # that a memory grows to


@dataclass(frozen=True)
class Scenario:
    """One kind of work.

    Attributes:
        name: Of it.
        work: Does all of it in a folder, from wherever an earlier attempt was killed; run in a child.
        check: What must be true of the folder after a kill, given what the children have said.
        check_end: What must be true of the folder at the end, given that of an unbroken child.
    """

    name: str
    work: Callable[[Path, Say], None]
    check: Callable[[Path, list[str]], None]
    check_end: Callable[[Path, Path], None]


def largest(said: list[str], what: str) -> int:
    """The largest number that was said after a word; −1 where none was."""
    return max((int(line.split()[1]) for line in said if line.startswith(f"{what} ")), default=-1)


# --- training and sleep -------------------------------------------------------------------------------------


def saying(function: Callable[..., Any], say: Say, words: Callable[..., str]) -> Callable[..., Any]:
    """The function, which says when it is done."""

    def told(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        say(words(*arguments, **options))
        return result

    return told


def train(folder: Path, say: Say) -> None:
    """Train and sleep, from wherever it was."""
    import vma.training.loop as loop

    loop.save_checkpoint = saying(  # type: ignore[assignment]
        loop.save_checkpoint, say, lambda path, progress, *_: f"{path.stem} {progress.update}"
    )
    loop.save_model = saying(loop.save_model, say, lambda model, path, notes: f"model {notes['update']}")  # type: ignore[assignment]
    loop.Run.append_metrics = saying(loop.Run.append_metrics, say, lambda run, row: f"line {row['update']}")  # type: ignore[method-assign]
    attempt(folder, SETTINGS)


def check_run(folder: Path, said: list[str]) -> None:
    """No file is broken, none is behind what was said, and the model says truly how long it was trained.

    Lines of metrics are kept up to the checkpoint; a run that goes on drops those after it, and makes them again.
    """
    run = Run(folder)
    if not run.settings_file.exists():
        assert not said
        return
    assert complaints_of(run) == []
    for name in ("checkpoint", "sleep"):
        file = folder / f"{name}.safetensors"
        assert largest(said, name) <= (read_progress(file).update if file.exists() else -1)
    if run.model_file.exists() or largest(said, "model") >= 0:
        load_model(run.model_file)
        assert largest(said, "model") <= model_progress(run).update
    checked = latest_progress(run).update if run.checkpoint_file.exists() else -1
    lines = {int(line.split()[1]) for line in said if line.startswith("line ")}
    assert {each for each in lines if each <= checked} <= {row["update"] for row in run.metrics()}


def check_trained(folder: Path, whole: Path) -> None:
    """The same weights and losses, bit for bit."""
    one, two = Run(folder), Run(whole)
    assert is_trained(one)
    assert losses(one) == losses(two)
    for name in ("checkpoint_file", "sleep_file", "model_file"):
        ours, theirs = load_file(getattr(one, name)), load_file(getattr(two, name))
        assert ours.keys() == theirs.keys()
        assert [key for key in ours if not ours[key].equal(theirs[key])] == []


# --- an evaluation ------------------------------------------------------------------------------------------


def evaluate(folder: Path, say: Say) -> None:
    """Measure a likelihood in parts, of a run beside the folder; an answer that was written is not made again."""
    torch.set_num_threads(1)
    if not list(folder.glob("nll-*.json")):
        trained = open_run(Run(folder.parent / "trained"))
        evaluation = nll(trained, NllOptions(episodes=12, classes=4, targets=2, shots=2, samples=4))
        done = len(kept(folder))
        here = Processes(0, 1, torch.device("cpu"))
        answer(evaluation, folder, here, show=lambda count, parts: say(f"part {done + count}"))
    say("answered 1")


def kept(folder: Path) -> dict[int, Any]:
    """The rows of a cut evaluation, each of a part of its own."""
    rows = {}
    for path in (folder / "unfinished").glob("*.jsonl"):
        for line in path.read_text().splitlines():
            if line.endswith("}}") and line.startswith('{"unit"'):
                row = json.loads(line)
                rows[row["unit"]] = row["row"]
    return rows


def check_rows(folder: Path, said: list[str]) -> None:
    """An answer that was given is there, and so is every part until then."""
    answers = [json.loads(path.read_text()) for path in folder.glob("nll-*.json")]
    assert len(answers) >= (largest(said, "answered") == 1)
    assert answers or len(kept(folder)) >= largest(said, "part")


def check_answer(folder: Path, whole: Path) -> None:
    """One answer, and the unbroken one; nothing is left of the parts."""
    one, two = (
        [json.loads(path.read_text()) for path in each.glob("nll-*.json")] for each in (folder, whole)
    )
    assert len(one) == len(two) == 1
    assert one[0]["results"] == two[0]["results"]


# --- memories -----------------------------------------------------------------------------------------------


def tiny_model(folder: Path) -> TrainedModel:
    """A model of 4×4 pixels in a file beside the folder."""
    path = folder.parent / "tiny.safetensors"
    if not path.exists():
        torch.manual_seed(0)
        save_model(build_vma(replace(small_mlp())).float(), path)
    return load(path)


def drawing(number: int) -> Any:
    """An image by number."""
    bits = [(number >> place) & 1 for place in range(16)]
    return torch.tensor(bits).float().reshape(4, 4).numpy()


def remember(folder: Path, say: Say) -> None:
    """Let a saved memory grow by one item at a time."""
    torch.set_num_threads(1)
    folder.mkdir(exist_ok=True)
    model, path = tiny_model(folder), folder / "memory.safetensors"
    memory = model.open_memory(path) if path.exists() else None
    while memory is None or len(memory) < ITEMS:
        number = 0 if memory is None else len(memory)
        grown = model.remember if memory is None else memory.add
        memory = grown([drawing(number + 1)], [str(number)])
        memory.save(path)
        say(f"items {len(memory)}")


def check_memory(folder: Path, said: list[str]) -> None:
    """As many items as were acknowledged, or one more, each as it was drawn."""
    path = folder / "memory.safetensors"
    if largest(said, "items") < 0 and not path.exists():
        return
    memory = tiny_model(folder).open_memory(path)
    assert len(memory) >= largest(said, "items")
    assert list(memory.labels) == [str(number) for number in range(len(memory))]
    for number, item in enumerate(memory.items):
        assert item.cpu().float().equal(torch.from_numpy(drawing(number + 1)))


def check_whole_memory(folder: Path, whole: Path) -> None:
    """The same items, and keys but for what a batch of another size makes of a sum."""
    one, two = (tiny_model(each).open_memory(each / "memory.safetensors") for each in (folder, whole))
    assert (one.labels, len(one)) == (two.labels, ITEMS)
    torch.testing.assert_close(one.keyed.keys, two.keyed.keys)


def serve(folder: Path, say: Say) -> None:
    """The same in the server's store, one change at a time."""
    torch.set_num_threads(1)
    folder.mkdir(exist_ok=True)
    model = tiny_model(folder)
    store = Store(model, folder / "memory.safetensors")
    while (number := len(store.now.contents.ids)) < ITEMS:
        store.change("add", lambda it, n=number: it.add(model, [drawing(n + 1)], [str(n)]))  # type: ignore[misc]
        say(f"items {len(store.now.contents.ids)}")


# --- a memory on disk -----------------------------------------------------------------------------------------


def build_large(folder: Path, say: Say) -> None:
    """Build a memory on disk of half of the items, add the others, forget some, and keep its index now and then."""
    torch.set_num_threads(1)
    building.FIRST = building.PIECE = 4
    model, place = tiny_model(folder), folder / "large"
    np.save(array := folder.parent / "half.npy", np.stack([drawing(i + 1) for i in range(ITEMS // 2)]))
    memory = model.large_memory(place, None) if is_large(place) else model.create_memory(place, index="faiss")
    building.fill(memory, building.sources_in([array]), "half", lambda done, total: say(f"items {done}"))
    while (number := memory.snapshot.rows) < ITEMS:
        memory.add([drawing(number + i + 1) for i in range(3)], str(number), sources=[""] * 3)
        say(f"items {memory.snapshot.rows}")
        forget_some(memory, say)
        memory.save_index()
        say(f"index {memory.index.count()}")
    forget_some(memory, say)


def forget_some(memory: LargeMemory, say: Say) -> None:
    """Forget every item before the last ten whose number is divided by seven."""
    for number in range(0, memory.snapshot.rows - 10, 7):
        if number not in memory.snapshot.forgotten:
            memory.forget([number])
            say(f"forgot {number}")


def check_large(folder: Path, said: list[str]) -> None:
    """What was said is there, with its image; every file is whole, nothing is there twice, and Σ p(a) = 1."""
    place = folder / "large"
    if not is_large(place):
        assert largest(said, "items") < 0
        return
    found = open_snapshot(place)
    check_files(found, lambda done, total: None)
    assert found.rows >= largest(said, "items")
    forgotten = {int(line.split()[1]) for line in said if line.startswith("forgot ")}
    assert forgotten <= set(found.forgotten.tolist())
    images = np.stack([drawing(number + 1) for number in range(found.rows)]) if found.rows else np.empty(0)
    assert np.array_equal(found.items.slice(0, found.rows) / 255, images) or not found.rows
    if found.rows:
        masses = found.prior.mass(found.alive())
        total = sum((Fraction(float(mass)) * 2**SCALE for mass in masses), Fraction())
        assert total == int(found.manifest.total)


def check_whole_large(folder: Path, whole: Path) -> None:
    """The same items, labels and keys as of an unbroken child, and an index that finds them all."""
    one, two = (tiny_model(each).large_memory(each / "large", None) for each in (folder, whole))
    (ours, theirs) = (memory.snapshot for memory in (one, two))
    every = np.arange(ITEMS)
    assert (ours.rows, ours.forgotten.tolist()) == (ITEMS, theirs.forgotten.tolist())
    assert ours.texts(every) == theirs.texts(every)
    np.testing.assert_allclose(ours.keys[every], theirs.keys[every], atol=1e-5)
    assert sorted(one.index) == ours.alive().tolist()


SCENARIOS = (
    Scenario("training and sleep", train, check_run, check_trained),
    Scenario("evaluation", evaluate, check_rows, check_answer),
    Scenario("memory", remember, check_memory, check_whole_memory),
    Scenario("server", serve, check_memory, check_whole_memory),
    Scenario("large memory", build_large, check_large, check_whole_large),
)
TRAINED: TrainSettings = small(updates=3)
