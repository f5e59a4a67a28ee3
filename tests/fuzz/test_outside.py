"""A small budget of the long run: every input ends in an answer or a sentence, within stated memory and time."""

import json
import os
import signal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz import examples
from tests.fuzz.mutation import mutated
from tests.fuzz.outside import SHARES, run_batch
from tests.fuzz.outside_targets import SIDE, TARGETS, outcome, read_request
from vma.errors import InputError

BUDGET = 60  # inputs of each target


@pytest.mark.parametrize("name", list(TARGETS))
def test_right_inputs_are_answered(name: str, tmp_path: Path) -> None:
    """Else the mutations would begin with what is refused anyway."""
    target = TARGETS[name]
    found = [outcome(target, example, tmp_path) for example in target.examples()]
    assert found.count("answer") >= len(found) / 2


@pytest.mark.parametrize("name", list(TARGETS))
def test_whatever_comes_ends_in_an_answer_or_a_sentence(name: str) -> None:
    tried, found = run_batch(name, seed=1, start=0, count=BUDGET)
    assert found["failures"] == []
    assert tried == found["answer"] + found["sentence"] == BUDGET


def test_failures_are_found_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A traceback, a word that is no sentence, memory without end, and a process that ends."""

    def fail(content: bytes, folder: Path) -> None:
        match len(content):
            case 1:
                raise ZeroDivisionError
            case 2:
                raise InputError("no")
            case 3:
                bytearray(2**40)
            case 4:
                os.kill(os.getpid(), signal.SIGKILL)

    kinds = iter(range(1, 6))
    monkeypatch.setitem(TARGETS, "label", type(TARGETS["label"])(lambda: [b"x"], fail))
    monkeypatch.setattr("tests.fuzz.outside.mutated", lambda *_: b"x" * next(kinds))
    tried, found = run_batch("label", seed=0, start=7, count=5)
    assert (tried, found["answer"], found["sentence"]) == (4, 0, 0)
    last = [each["trace"].strip().splitlines()[-1] for each in found["failures"]]
    assert [each["input"] for each in found["failures"]] == [7, 8, 9, 10]
    assert [line.split(":")[0] for line in last] == [
        "ZeroDivisionError",
        "AssertionError",
        "MemoryError",
        "killed",
    ]


def test_every_target_has_a_share() -> None:
    assert set(SHARES) == set(TARGETS)


def test_inputs_are_the_same_again() -> None:
    given_examples = TARGETS["array"].examples()
    inputs = [mutated(given_examples, f"0:array:{number}") for number in range(200)]
    assert inputs == [mutated(given_examples, f"0:array:{number}") for number in range(200)]
    assert len(set(inputs)) > 190


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
    right = {
        "format": "vma-memory",
        "version": "1",
        "labels": json.dumps(list(header.values())[: len(tensors)]),
    }
    content = examples.safetensors(
        {"items": examples.np.zeros((len(tensors), SIDE, SIDE), examples.np.uint8)},
        {**right, **{key: str(value) for key, value in header.items() if key.isprintable()}},
    )
    outcome(TARGETS["memory"], content, tmp_path_factory.mktemp("memory"))


def test_the_lab_notes_state_how_many_inputs_there_were() -> None:
    root = Path(__file__).parents[2]
    found = json.loads((root / "results/fuzz-outside.json").read_text())["targets"]
    count = sum(each["inputs"] for each in found.values())
    assert f"{count:,}".replace(",", " ") in (root / "docs/lab-notes/attacks.md").read_text()
    assert not any(each["failures"] for each in found.values())
