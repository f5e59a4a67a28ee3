"""What was imagined, as one picture and as a data set that can be read again."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.oracles import small_mlp
from tests.helpers.trained_models import drawings, trained
from vma import files
from vma.data import FolderOptions, load_dataset
from vma.errors import InputError
from vma.fewshot import ImageMemory
from vma.fewshot.imagined import folder_name

SIZE = (9, 9)


@pytest.fixture
def memory(tmp_path: Path) -> ImageMemory:
    model = trained(tmp_path / "run", small_mlp(height=SIZE[0], width=SIZE[1]))
    return model.remember(drawings(5, SIZE), ["b", "a/c", "b", None, ".."])


def test_every_class_gets_as_many(memory: ImageMemory) -> None:
    drawn = memory.imagine_each(3, seed=0)
    assert drawn.names == ("b",) * 3 + ("a/c",) * 3 + ("(item 3)",) * 3 + ("..",) * 3
    assert drawn.classes == ("b", "a/c", "(item 3)", "..")
    assert set(drawn.items[:3].tolist()) <= {0, 2}
    assert drawn.items[3:].tolist() == [1] * 3 + [3] * 3 + [4] * 3
    assert len(drawn) == len(drawn.images) == len(drawn.shown) == 12
    again, other = memory.imagine_each(3, seed=0), memory.imagine_each(3, seed=1)
    assert torch.equal(drawn.images, again.images)
    assert not torch.equal(drawn.images, other.images)
    first = memory.imagine(3, label="b", seed=0)
    assert torch.equal(drawn.images[:3], first.images)


def test_a_data_set_is_read_again_as_it_was(memory: ImageMemory, tmp_path: Path) -> None:
    memory = memory.relabel(4, "d")
    drawn = memory.imagine_each(4, seed=0)
    drawn.save(tmp_path / "new" / "set", binary=True)
    places = sorted(str(p.relative_to(tmp_path / "new/set")) for p in (tmp_path / "new/set").rglob("*.png"))
    classes = ("(item 3)", "a%2Fc", "b", "d")
    assert places == [f"{name}/{i:04d}.png" for name in classes for i in range(1, 5)]
    found = load_dataset(
        "folder", "all", data=tmp_path / "new/set", size=SIZE[0], folder=FolderOptions(invert="yes")
    )
    assert found.classes == classes
    order = [drawn.names.index(name) + i for name in ("(item 3)", "a/c", "b", "d") for i in range(4)]
    np.testing.assert_array_equal(found.images, 255 * drawn.images[order].numpy())
    model = trained(tmp_path / "run", small_mlp(height=SIZE[0], width=SIZE[1]))
    back = model.remember(tmp_path / "new/set", options=FolderOptions(invert="yes"))
    assert back.labels == tuple(name for name in classes for _ in range(4))
    assert torch.equal(back.items, drawn.images[order].to(back.items))


def test_a_data_set_of_shades_has_the_probabilities(memory: ImageMemory, tmp_path: Path) -> None:
    drawn = memory.imagine_each(1, seed=0)
    drawn.save(tmp_path / "set")
    with Image.open(tmp_path / "set/b/0001.png") as image:
        np.testing.assert_allclose(1 - np.asarray(image) / 255, drawn.shown[0].numpy(), atol=0.5 / 255 + 1e-9)


def test_names_of_folders_are_safe_and_different() -> None:
    names = ["a/b", "a%2Fb", "a\\b", "..", ".hidden", "x:y*?", "tab\t", "字 and ä", "(item 3)"]
    found = [folder_name(name) for name in names]
    assert len(set(found)) == len(names)
    assert found[-2:] == ["字 and ä", "(item 3)"]
    assert not any("/" in name or "\\" in name or name.startswith(".") for name in found)


def test_one_picture(memory: ImageMemory, tmp_path: Path) -> None:
    memory.imagine(5, seed=0).save(tmp_path / "drawn.PNG")
    with Image.open(tmp_path / "drawn.PNG") as picture:
        assert picture.format == "PNG"
    with pytest.raises(InputError, match=r"drawn\.jpg must end in \.png, or be the name of a folder"):
        memory.imagine(5, seed=0).save(tmp_path / "drawn.jpg")


def test_an_explanation_is_saved_as_picture_or_numbers(memory: ImageMemory, tmp_path: Path) -> None:
    why = memory.explain(drawings(1, SIZE), samples=2)
    why.save(tmp_path / "why.png")
    why.save(tmp_path / "why.json")
    with Image.open(tmp_path / "why.png") as picture:
        assert picture.format == "PNG"
    assert (tmp_path / "why.json").read_bytes() == why.to_json()
    with pytest.raises(InputError, match=r"must end in \.png or \.json"):
        why.save(tmp_path / "why.txt")


def test_a_folder_is_written_whole_or_not_at_all(
    memory: ImageMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn, full = memory.imagine_each(2, seed=0), tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("keep me")
    with pytest.raises(InputError, match=r"full is not empty: name a folder that is empty or not there yet"):
        drawn.save(full)
    (tmp_path / "mine").write_text("")
    with pytest.raises(InputError, match="mine is a file"):
        drawn.save(tmp_path / "mine")
    (tmp_path / "empty").mkdir()
    drawn.save(tmp_path / "empty")
    assert len(list((tmp_path / "empty").rglob("*.png"))) == 8
    before = sorted(tmp_path.iterdir())
    written, write = [], Path.write_bytes

    def failing(path: Path, content: bytes) -> int:
        written.append(path)
        if len(written) == 5:
            raise OSError(28, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(files.Path, "write_bytes", failing)
    with pytest.raises(InputError, match=r"Cannot write .*half: No space left on device"):
        drawn.save(tmp_path / "half")
    assert sorted(tmp_path.iterdir()) == before
