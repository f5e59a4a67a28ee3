"""Items are small values that know their file, through every change of a memory and in its file."""

from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from tests.helpers.oracles import small_mlp
from tests.helpers.trained_models import drawings, trained
from vma.errors import InputError
from vma.fewshot import ImageMemory, TrainedModel, load

SIZE = (9, 8)
FILES = Path(__file__).parents[1] / "files"


@pytest.fixture
def model(tmp_path: Path) -> TrainedModel:
    return trained(tmp_path / "run", small_mlp(height=SIZE[0], width=SIZE[1]))


@pytest.fixture
def memory(model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageMemory:
    """Two items out of files of class `a`, one of class `b`, and one that came from no file."""
    monkeypatch.chdir(tmp_path)
    for name, image in zip(("a/1", "a/2", "b/1"), drawings(3, SIZE), strict=True):
        path = Path(f"symbols/{name}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(255 - 255 * image).save(path)
    return model.remember("symbols").add(drawings(1, SIZE, seed=5), "c")


PATHS = ("symbols/a/1.png", "symbols/a/2.png", "symbols/b/1.png", None)


def test_a_memory_is_a_sequence_of_items(memory: ImageMemory) -> None:
    assert len(memory) == len(list(memory)) == 4
    for number, item in enumerate(memory):
        assert (item.number, item.label, item.source) == (number, memory.labels[number], PATHS[number])
        assert torch.equal(item.image, memory.items[number])
    assert (memory[-1].number, memory[np.int64(1)].source) == (3, PATHS[1])
    assert [item.name for item in memory.relabel(3, None)] == ["a", "a", "b", "(item 3)"]
    for number in (4, -5):
        with pytest.raises(IndexError, match=f"items 0 to 3, and none of number {number}"):
            memory[number]
    with pytest.raises(IndexError, match="none of number 'a'"):
        memory["a"]  # type: ignore[call-overload]


def test_a_slice_is_a_smaller_memory(memory: ImageMemory) -> None:
    some = memory[1:3]
    assert (some.labels, some.sources) == (("a", "b"), PATHS[1:3])
    torch.testing.assert_close(some.keyed.keys, memory.keyed.keys[1:3], rtol=0, atol=0)
    assert memory[::-1].sources == PATHS[::-1]
    with pytest.raises(InputError, match=r"so \[\] names none"):
        memory[9:]


def test_sources_follow_their_items(memory: ImageMemory, tmp_path: Path) -> None:
    assert memory.sources == PATHS
    assert memory.forget([0, 3]).sources == PATHS[1:3]
    assert memory.merge(memory.keep([2, 0])).sources == (*PATHS, PATHS[2], PATHS[0])
    assert memory.relabel(0, "z").sources == PATHS
    assert memory.add([Path(PATHS[2] or ""), drawings(1, SIZE)[0]]).sources == (*PATHS, PATHS[2], None)


def test_sources_come_back_from_the_file(memory: ImageMemory, model: TrainedModel, tmp_path: Path) -> None:
    memory.save(tmp_path / "memory.safetensors")
    assert model.open_memory(tmp_path / "memory.safetensors").sources == PATHS
    other = trained(tmp_path / "other", small_mlp(height=SIZE[0], width=SIZE[1]), seed=3)
    assert other.open_memory(tmp_path / "memory.safetensors").sources == PATHS


def test_a_file_of_an_earlier_version_has_no_sources() -> None:
    """Written by vma 0.1 of 18 November, before items knew their files."""
    memory = load(FILES / "perceptron-0.1.safetensors").open_memory(FILES / "memory-0.1.safetensors")
    assert memory.labels == ("a", "ä", None)
    assert memory.sources == (None, None, None)
    np.testing.assert_array_equal(memory.items.numpy(), drawings(3, (4, 4)))


@pytest.mark.parametrize(
    ("sources", "message"), [("[1, null]", "no readable sources"), ('["a.png"]', "2 items but 1 sources")]
)
def test_damaged_sources(model: TrainedModel, tmp_path: Path, sources: str, message: str) -> None:
    header = {"format": "vma-memory", "version": "1", "labels": "[null,null]", "sources": sources}
    path = tmp_path / "memory.safetensors"
    save_file({"items": torch.zeros(2, *SIZE, dtype=torch.uint8)}, path, header)
    with pytest.raises(InputError, match=message):
        model.open_memory(path)


def test_a_file_still_has_the_format_that_earlier_versions_read(memory: ImageMemory) -> None:
    content = memory.to_bytes()
    size = int.from_bytes(content[:8], "little")
    metadata = msgspec.json.decode(content[8 : 8 + size])["__metadata__"]
    assert (metadata["version"], metadata["labels"]) == ("1", '["a","a","b","c"]')
    assert msgspec.json.decode(metadata["sources"]) == list(PATHS)


def test_answers_name_the_files_of_their_items(memory: ImageMemory) -> None:
    (found,) = memory.recognise("symbols/a/2.png", top=4)
    assert found.source == "symbols/a/2.png"
    for item, (number, _) in zip(found.deciding, found.items, strict=True):
        assert (item.number, item.source) == (number, PATHS[number])
    why = memory.explain("symbols/b/1.png", samples=2, top=4)
    assert {each.item: each.source for each in why.top} == dict(enumerate(PATHS))
    drawn = memory.imagine(30, seed=0)
    assert {number: item.source for number, item in drawn.origins.items()} == {
        number: PATHS[number] for number in set(drawn.items.tolist())
    }
