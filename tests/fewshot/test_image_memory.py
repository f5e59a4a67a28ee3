"""A memory is a value: it grows, shrinks, merges, and comes back from a file as it was."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from tests.helpers.oracles import small_convolutional, small_mlp
from tests.helpers.trained_models import SIZE, drawings, trained
from vma import VMA, InputError, Memory, ModelConfig, save_model
from vma.baselines import VAE
from vma.build import build_vma
from vma.data import FolderOptions
from vma.fewshot import ImageMemory, TrainedModel, load
from vma.fewshot.memory_file import MEMORY_FILE
from vma.memory import KeyedMemory


@pytest.fixture
def model(tmp_path: Path) -> TrainedModel:
    return trained(tmp_path / "characters")


def count_keys(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From now on, how many images each computation of keys looked at."""
    counts: list[int] = []
    compute = VMA.remember

    def counted(model: VMA, items: torch.Tensor) -> KeyedMemory:
        counts.append(len(items))
        return compute(model, items)

    monkeypatch.setattr(VMA, "remember", counted)
    return counts


def assert_fresh(memory: ImageMemory) -> None:
    """Its keys are those of its items, stored as a query reads them."""
    fresh = memory.model.addressing.keyed(Memory(memory.items)).keys
    assert memory.keyed.keys.T.is_contiguous()
    torch.testing.assert_close(memory.keyed.keys, fresh, rtol=0, atol=1e-9)
    assert len(memory) == len(memory.labels) == len(memory.items)


def test_remember(model: TrainedModel) -> None:
    images = drawings(4)
    memory = model.remember(images, ["b", 7, None, " b "])
    np.testing.assert_array_equal(memory.items.numpy(), images)
    assert memory.labels == ("b", "7", None, "b")
    assert memory.classes == ("b", "7")
    assert memory.names == ("b", "7", "(item 2)", "b")
    assert (model.size, memory.size, model.name) == (SIZE, SIZE, "characters")
    assert_fresh(memory)
    assert model.remember(images, np.array([3, 1, 3, 3])).labels == ("3", "1", "3", "3")
    assert model.remember(images, "all").classes == ("all",)
    assert model.remember(images).labels == (None,) * 4


def test_remember_a_folder_of_classes(model: TrainedModel, tmp_path: Path) -> None:
    images = drawings(3)
    for name, image in zip(("b/1.png", "a/2.png", "a/1.png"), images, strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(255 - 255 * image).save(tmp_path / name)
    for folder in ("a", "b"):
        assert model.remember(tmp_path / folder).labels == (None,) * len(list((tmp_path / folder).iterdir()))
    (tmp_path / "both").mkdir()
    for folder in ("a", "b"):
        (tmp_path / folder).rename(tmp_path / "both" / folder)
    memory = model.remember(str(tmp_path / "both"))
    assert memory.labels == ("a", "a", "b")
    np.testing.assert_array_equal(memory.items.numpy(), images[[2, 1, 0]])


def test_growing_and_shrinking_compute_each_key_once(
    model: TrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = count_keys(monkeypatch)
    images = drawings(6)
    first = model.remember(images[:3], "abc")
    grown = first.add(images[3:5], ["d", "e"])
    merged = grown.forget([0, 3]).merge(first)
    named = merged.relabel([0, 1], "x").relabel(2, None)
    assert counts == [3, 2]
    np.testing.assert_array_equal(grown.items.numpy(), images[:5])
    np.testing.assert_array_equal(named.items.numpy(), images[[1, 2, 4, 0, 1, 2]])
    assert named.labels == ("x", "x", None, "abc", "abc", "abc")
    assert (len(first), first.labels) == (3, ("abc",) * 3)
    for memory in (grown, merged, named):
        assert_fresh(memory)


def test_options_are_kept_for_later_images(model: TrainedModel) -> None:
    memory = model.remember(1 - drawings(2), options=FolderOptions(invert="no", level=False))
    added = memory.add(1 - drawings(1), options=FolderOptions(invert="yes", level=False)).add(1 - drawings(1))
    np.testing.assert_array_equal(added.items[2].numpy(), drawings(1)[0])
    np.testing.assert_array_equal(added.items[3].numpy(), 1 - drawings(1)[0])


def test_one_file(model: TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = model.remember(drawings(3), ["ä", None, 'quote " and\nline'])
    path = tmp_path / "new folder" / "memory.safetensors"
    memory.save(path)
    assert len(path.read_bytes()) == len(memory.to_bytes())
    counts = count_keys(monkeypatch)
    back = model.open_memory(path)
    assert counts == []
    assert back.labels == memory.labels
    assert torch.equal(back.items, memory.items)
    assert torch.equal(back.keyed.keys, memory.keyed.keys)
    other = trained(tmp_path / "other", seed=2)
    theirs = other.open_memory(path)
    assert counts == [3]
    assert_fresh(theirs)
    with pytest.raises(InputError, match="two different models"):
        back.merge(theirs)


def test_grey_items_come_back_exactly(model: TrainedModel, tmp_path: Path) -> None:
    grey = drawings(2) * np.array([50, 200], np.uint8)[:, None, None]
    memory = model.remember(grey, options=FolderOptions(level=False, binarize=None))
    assert set(np.unique(memory.items.numpy() * 255).round()) == {0, 50, 200}
    memory.save(tmp_path / "grey.safetensors")
    assert torch.equal(model.open_memory(tmp_path / "grey.safetensors").items, memory.items)


def header(**changes: str) -> dict[str, str]:
    return {"format": MEMORY_FILE.format, "version": "1", "labels": "[null,null]", "model": ""} | changes


ITEMS = torch.zeros(2, *SIZE, dtype=torch.uint8)
BAD_FILES: dict[str, tuple[dict[str, torch.Tensor], dict[str, str]]] = {
    "not one of a vma memory": ({"items": ITEMS}, header(format="vma-model")),
    "update vma": ({"items": ITEMS}, header(version="2")),
    "version '' ?": ({"items": ITEMS}, header(version="")),
    "no readable items": ({"keys": torch.zeros(2, 6)}, header()),
    "no readable item": ({"items": ITEMS.double()}, header()),
    "no readable ite": ({"items": ITEMS[:0]}, header(labels="[]")),
    "remembers images of 17x17, but the model works on 17x22": ({"items": ITEMS[:, :, :17]}, header()),
    "no readable labels": ({"items": ITEMS}, header(labels="[1, 2]")),
    "no readable label": ({"items": ITEMS}, header(labels="{")),
    "2 items but 1 labels": ({"items": ITEMS}, header(labels='["a"]')),
}


@pytest.mark.parametrize(("message", "content"), BAD_FILES.items(), ids=BAD_FILES)
def test_unusable_memory_files(
    model: TrainedModel,
    tmp_path: Path,
    message: str,
    content: tuple[dict[str, torch.Tensor], dict[str, str]],
) -> None:
    path = tmp_path / "memory.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in content[0].items()}, path, content[1])
    with pytest.raises(InputError, match=message):
        model.open_memory(path)


def test_damaged_memory_files(model: TrainedModel, tmp_path: Path) -> None:
    path = tmp_path / "memory.safetensors"
    with pytest.raises(InputError, match="no memory file"):
        model.open_memory(path)
    model.remember(drawings(2)).save(path)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(InputError, match="damaged"):
        model.open_memory(path)
    path.write_bytes(b"\x00" * 40)
    with pytest.raises(InputError, match="damaged"):
        model.open_memory(path)


@pytest.mark.parametrize("keys", [torch.full((2, 6), torch.nan), torch.zeros(1, 6), torch.zeros(2, 5)])
def test_keys_that_cannot_be_right_are_computed_anew(
    model: TrainedModel, tmp_path: Path, keys: torch.Tensor
) -> None:
    path = tmp_path / "memory.safetensors"
    items = torch.from_numpy(drawings(2) * 255)
    save_file({"items": items, "keys": keys}, path, header(model=model.fingerprint))
    assert_fresh(model.open_memory(path))


def bad_calls(memory: ImageMemory) -> dict[str, Any]:
    images = drawings(2)
    return {
        "2 images but 3 labels": lambda: memory.add(images, ["a", "b", "c"]),
        "text or a whole number, not 1.5": lambda: memory.add(images, [1.5, 2.5]),
        "text or a whole number, not ''": lambda: memory.relabel(0, ""),
        "list with one label for each": lambda: memory.add(images, {"a"}),
        "numbered from 0 to 2, so 3 names none": lambda: memory.forget(3),
        "so -1 names none": lambda: memory.relabel(-1, "a"),
        r"so \[\] names none": lambda: memory.forget([]),
        "keep at least one": lambda: memory.forget([0, 1, 2]),
        "not from both": lambda: memory.imagine(2, label="a", item=0),
        "Unknown label 'rune'": lambda: memory.imagine(2, label="rune"),
        "1 to 10000 images .* not 0": lambda: memory.imagine(0),
        "1 to 10000 images .* not 100000000": lambda: memory.imagine(10**8),
        "temperature must be 0": lambda: memory.imagine(1, temperature=-1.0),
        "temperature must be 0 ": lambda: memory.imagine(1, temperature=float("nan")),
        "seed must be": lambda: memory.imagine(1, seed=-1),
        "list of pairs": lambda: memory.vary(0, [(0.0, float("inf"))]),
        "at least one deciding": lambda: memory.recognise(images, top=0),
        "needs K >= 1": lambda: memory.score(images, samples=0),
        "One image is explained": lambda: memory.explain(images),
    }


@pytest.mark.parametrize("message", bad_calls(None))  # type: ignore[arg-type]
def test_mistakes(model: TrainedModel, message: str) -> None:
    memory = model.remember(drawings(3), ["a", "b", "c"])
    with pytest.raises(InputError, match=f"(?i){message}"):
        bad_calls(memory)[message]()


def test_a_memory_without_labels_says_so(model: TrainedModel) -> None:
    with pytest.raises(InputError, match="no item has a label"):
        model.remember(drawings(2)).imagine(2, label="a")


def test_load_finds_the_model(tmp_path: Path) -> None:
    model = trained(tmp_path / "my-run")
    quick = trained(tmp_path / "quick" / "vma", seed=2)
    assert (model.name, quick.name) == ("my-run", "quick")
    assert load(tmp_path / "quick").fingerprint == quick.fingerprint != model.fingerprint
    save_model(model.model, tmp_path / "runes.safetensors")
    exported = load(str(tmp_path / "runes.safetensors"))
    assert (exported.name, exported.fingerprint) == ("runes", model.fingerprint)
    with pytest.raises(InputError, match="no model file"):
        load(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"a folder without a model\.safetensors"):
        load(tmp_path)


@pytest.mark.parametrize("change", [("latent", 4), ("prior", "flat")])
def test_the_fingerprint_is_of_configuration_and_weights(tmp_path: Path, change: tuple[str, Any]) -> None:
    same = trained(tmp_path / "a").fingerprint
    assert trained(tmp_path / "b").fingerprint == same
    assert trained(tmp_path / "c", small_convolutional(**dict([change]))).fingerprint != same


@pytest.mark.parametrize(
    ("config", "kind"),
    [(small_mlp(model="vae"), "vae model"), (small_mlp(learned_items=3), "with a learned memory")],
)
def test_only_a_model_with_raw_memory_can_remember(tmp_path: Path, config: ModelConfig, kind: str) -> None:
    save_model(VAE(config) if config.model == "vae" else build_vma(config), tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=f"holds a .*{kind}, which cannot remember"):
        load(tmp_path)


def test_labels_in_the_file_are_plain_json(model: TrainedModel) -> None:
    content = model.remember(drawings(2), ["a", None]).to_bytes()
    size = int.from_bytes(content[:8], "little")
    metadata = msgspec.json.decode(content[8 : 8 + size])["__metadata__"]
    assert len(metadata.pop("checksum")) == 64
    assert metadata == {
        "format": "vma-memory",
        "version": "1",
        "labels": '["a",null]',
        "sources": "[null,null]",
        "model": model.fingerprint,
    }
