"""A small budget of the long run: every input ends in an answer or a sentence, within stated memory and time."""

import gzip
import io
import json
import os
import signal
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import batches, examples
from tests.fuzz.batches import run_batch
from tests.fuzz.outside_targets import SIDE, TARGETS, make_archive, make_gzip, read_request
from tests.fuzz.target import Target, made, outcome
from vma.errors import InputError

BUDGET = 60  # inputs of each target
NAMED = [target.name for target in TARGETS]


@pytest.mark.parametrize("target", TARGETS, ids=NAMED)
def test_right_inputs_are_answered(target: Target, tmp_path: Path) -> None:
    """Else the mutations would begin with what is refused anyway."""
    found = [outcome(target, example, tmp_path) for example in target.right()]
    assert found.count("answer") >= len(found) / 2 > 0


@pytest.mark.parametrize("target", TARGETS, ids=NAMED)
def test_whatever_comes_ends_in_an_answer_or_a_sentence(target: Target) -> None:
    found = run_batch(target, seed=1, start=0, count=BUDGET)
    assert found.failures == []
    assert found.inputs == found.answer + found.sentence == BUDGET


def test_failures_are_found_and_named() -> None:
    """A traceback, a word that is no sentence, memory without end, and a process that ends."""

    def fail(number: int, folder: Path) -> None:
        match number:
            case 1:
                raise ZeroDivisionError
            case 2:
                raise InputError("no")
            case 3:
                bytearray(2**40)
            case 4:
                os.kill(os.getpid(), signal.SIGKILL)

    kinds = iter(range(6))
    found = run_batch(Target("odd", lambda _: next(kinds), fail, 1), seed=0, start=7, count=6)
    assert (found.inputs, found.answer, found.sentence) == (5, 1, 0)
    assert [each["input"] for each in found.failures] == [8, 9, 10, 11]
    assert [kind_of(each) for each in found.failures] == [
        "ZeroDivisionError",
        "AssertionError",
        "MemoryError",
        "killed",
    ]


def test_what_works_without_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "CPU_SECONDS", 0.2)

    def work(number: int, folder: Path) -> None:
        while True:
            pass

    (failure,) = run_batch(Target("slow", lambda _: 0, work, 1), seed=0, start=0, count=1).failures
    assert kind_of(failure).endswith("TooSlowError")


def test_what_waits_without_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "WAITED_SECONDS", 1.0)
    wait = Target("waiting", lambda _: 0, lambda number, folder: signal.pause(), 1)
    (failure,) = run_batch(wait, seed=0, start=0, count=1).failures
    assert kind_of(failure) == "killed"


def kind_of(failure: dict[str, Any]) -> str:
    """The kind of error of a failure."""
    return str(failure["trace"]).strip().splitlines()[-1].split(":")[0]


def test_inputs_are_the_same_again() -> None:
    array = next(target for target in TARGETS if target.name == "array")
    inputs = [made(array, 0, number) for number in range(200)]
    assert inputs == [made(array, 0, number) for number in range(200)]
    assert len(set(inputs)) > 190


@pytest.mark.parametrize("make", [make_archive, make_gzip])
def test_damage_is_hidden_behind_right_checksums(make: Callable[[Random], bytes]) -> None:
    """A good half of these inputs gets past the checksums, which would else hide what is in them."""
    right = sum(is_whole(make(Random(number))) for number in range(100))
    assert right >= 30


def is_whole(content: bytes) -> bool:
    """Whether all checksums of a packed file are right."""
    try:
        if content.startswith(b"PK"):
            return zipfile.ZipFile(io.BytesIO(content)).testzip() is None
        return bool(gzip.decompress(content)) or True
    except Exception:  # as many kinds of errors as there are kinds of damage
        return False


PLAIN = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=50)
)
NAMES = (
    "images",
    "label",
    "pixels",
    "ids",
    "card",
    "count",
    "points",
    "seed",
    "temperature",
    "version",
    "image",
)
JSON = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=20,
)
PATHS = (
    "remember",
    "keep",
    "forget",
    "rename",
    "undo",
    "imagine",
    "vary",
    "recognise",
    "examples",
    "memory/file",
)


@settings(max_examples=60, deadline=None)
@given(path=st.sampled_from(PATHS), message=JSON)
def test_messages_of_any_form_are_answered(
    tmp_path_factory: pytest.TempPathFactory, path: str, message: object
) -> None:
    folder = tmp_path_factory.mktemp("served")
    read_request(examples.post(path, message), folder)


@settings(max_examples=60, deadline=None)
@given(header=st.dictionaries(st.text(), PLAIN), tensors=st.lists(st.integers(0, SIDE), max_size=4))
def test_memory_files_of_any_header(
    tmp_path_factory: pytest.TempPathFactory, header: dict, tensors: list[int]
) -> None:
    memory = next(target for target in TARGETS if target.name == "memory")
    right = {
        "format": "vma-memory",
        "version": "1",
        "labels": json.dumps(list(header.values())[: len(tensors)]),
    }
    content = examples.safetensors(
        {"items": examples.np.zeros((len(tensors), SIDE, SIDE), examples.np.uint8)},
        {**right, **{key: str(value) for key, value in header.items() if key.isprintable()}},
    )
    outcome(memory, content, tmp_path_factory.mktemp("memory"))


@pytest.mark.parametrize("kind", ["inside", "outside"])
def test_the_lab_notes_state_how_many_inputs_there_were(kind: str) -> None:
    root = Path(__file__).parents[2]
    found = json.loads((root / f"results/fuzz-{kind}.json").read_text())["targets"]
    note = (root / "docs/lab-notes/attacks.md").read_text()
    for name, each in found.items():
        counts = [f"{each[key]:,}".replace(",", " ") for key in ("inputs", "answer", "sentence")]
        assert f"| {name} | {' | '.join(counts)} |" in note
        assert each["failures"] == []
