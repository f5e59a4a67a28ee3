"""`vma imagine | recognise | score | explain | export | info` as a user meets them."""

import csv
import json
from pathlib import Path

import pytest
import tyro
from PIL import Image

from tests.helpers.oracles import small_mlp
from tests.helpers.trained_models import drawings, trained
from vma.commands.export import export
from vma.commands.fewshot import explain, imagine, recognise, score
from vma.commands.info import info
from vma.errors import InputError
from vma.fewshot import load
from vma.fewshot.items import as_label

SIZE = (9, 8)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run, a memory of two classes, and some images, in which commands run."""
    trained(tmp_path / "run", small_mlp(height=SIZE[0], width=SIZE[1]))
    images = iter(drawings(7, SIZE))
    for name in ("memory/a/1", "memory/a/2", "memory/b/1", "memory/b/2", "new/x", "new/y", "one"):
        path = tmp_path / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(255 - 255 * next(images)).save(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: object, *arguments: str) -> None:
    tyro.cli(command, args=arguments)  # type: ignore[arg-type]


def test_imagine(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(imagine, "run", "--memory", "memory", "--n", "9", "--label", "b", "--binary")
    assert "9 images from 2 of 4 items in memory: imagined.png" in capsys.readouterr().out
    with Image.open("imagined.png") as picture:
        assert picture.format == "PNG"
        assert picture.width > 300
    run(imagine, "run", "--memory", "memory", "--item", "3", "--temperature", "0", "--out", "b.PNG")
    first = Path("b.PNG").read_bytes()
    run(imagine, "run", "--memory", "memory", "--item", "3", "--temperature", "0", "--out", "c.png")
    assert Path("c.png").read_bytes() == first


def test_recognise(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(recognise, "run", "new", "one.png", "--memory", "memory", "--out", "answers.csv")
    assert "new/x.png" in capsys.readouterr().out
    with Path("answers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    memory = load("run").remember("memory")
    expected = memory.recognise(["new", "one.png"])
    assert [row["image"] for row in rows] == ["new/x.png", "new/y.png", "one.png"]
    for row, found in zip(rows, expected, strict=True):
        assert row["label"] == found.label
        assert float(row["p(a)"]) == found.probabilities["a"]
        first, share = found.items[0]
        assert row["items"].split("; ")[0] == f"{first} {memory.labels[first]} {share:.4g}"
        assert row["sources"].split("; ")[0] == memory.sources[first]
        assert row["novel"] == str(found.novel)
    run(recognise, "run", "new/x.png", "--memory", "memory", "--by", "likelihood", "--out", "answers.json")
    (answer,) = json.loads(Path("answers.json").read_text())
    assert set(answer["probabilities"]) == {"a", "b"}
    assert sum(answer["probabilities"].values()) == pytest.approx(1)
    assert answer["items"][0]["label"] in ("a", "b")
    assert answer["items"][0]["source"] in memory.sources
    assert answer["novel"] in (True, False)


def test_recognise_says_what_is_new_and_which_files_decided(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vma.fewshot.image_memory.novel", lambda *_: [True])
    run(recognise, "run", "one.png", "--memory", "memory")
    said = capsys.readouterr().out
    assert "new: closest to " in said
    assert "memory/a/1.png (" in said or "memory/b/" in said
    run(recognise, "run", "one.png", "--memory", "memory", "--no-novelty")
    assert "new: " not in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.chdir(place)
    run(recognise, "run", "one.png", "--memory", "memory/a")
    assert "What is new is unknown: novelty needs 4 or more items" in capsys.readouterr().out


def test_imagine_a_data_set(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(imagine, "run", "--memory", "memory", "--each", "3", "--out", "set", "--binary")
    assert "3 images of each of 2 classes: set" in capsys.readouterr().out
    assert len(load("run").remember("set")) == 6
    with pytest.raises(InputError, match="set is not empty"):
        run(imagine, "run", "--memory", "memory", "--each", "3", "--out", "set")
    with pytest.raises(InputError, match="leave --label and --item out"):
        run(imagine, "run", "--memory", "memory", "--each", "3", "--out", "new-set", "--label", "a")
    with pytest.raises(InputError, match=r"so imagined\.png must be the name of a folder"):
        run(imagine, "run", "--memory", "memory", "--each", "3")


def test_score(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(score, "run", "new", "--memory", "memory", "--samples", "3", "--out", "scores.json")
    assert "log p(x|M)" in capsys.readouterr().out
    rows = json.loads(Path("scores.json").read_text())
    expected = load("run").remember("memory").score("new", samples=3)
    assert [(row["log_p"], row["novel"]) for row in rows] == [(s.log_p, s.novel) for s in expected]
    run(score, "run", "one.png", "--memory", "memory/a", "--samples", "3", "--out", "scores.csv")
    assert "novel is unknown: novelty needs 4 or more items" in capsys.readouterr().out
    assert Path("scores.csv").read_text().startswith("image,log_p,bits_per_pixel,surprise,novel,")


def test_explain(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(explain, "run", "one.png", "--memory", "memory", "--out", "why.json")
    found = json.loads(Path("why.json").read_text())
    expected = load("run").remember("memory").explain("one.png")
    assert found["q"] == expected.q.tolist()
    assert (found["label"], found["kl_a"], found["kl_z"]) == (expected.label, expected.kl_a, expected.kl_z)
    run(explain, "run", "one.png", "--memory", "memory")
    assert "KL_z" in capsys.readouterr().out
    with Image.open("explained.png") as picture:
        assert picture.format == "PNG"


def test_a_saved_memory_serves_as_well_as_its_folder(place: Path) -> None:
    load("run").remember("memory").save("characters.safetensors")
    for memory in ("memory", "characters.safetensors"):
        run(recognise, "run", "new", "--memory", memory, "--out", f"{Path(memory).stem}.csv")
    assert Path("memory.csv").read_bytes() == Path("characters.csv").read_bytes()


def test_export_and_info(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(export, "run", "model.safetensors")
    assert load("model.safetensors").fingerprint == load("run").fingerprint
    with pytest.raises(InputError, match="exists: choose another name, or add --overwrite"):
        run(export, "run", "model.safetensors")
    run(export, "run", "model.safetensors", "--overwrite")
    with pytest.raises(InputError, match="is a folder: name a file"):
        run(export, "run", "memory")
    capsys.readouterr()
    run(info, "run")
    from_folder = capsys.readouterr().out
    run(info, "model.safetensors")
    assert from_folder.splitlines()[1:] == capsys.readouterr().out.splitlines()[1:]


def test_mistakes_are_found_before_any_work(place: Path) -> None:
    with pytest.raises(InputError, match=r"a\.jpg must end in \.png"):
        run(imagine, "run", "--memory", "memory", "--out", "a.jpg")
    with pytest.raises(InputError, match=r"must end in \.csv or \.json"):
        run(score, "run", "new", "--memory", "memory", "--out", "scores.txt")
    with pytest.raises(InputError, match="no image file or folder nowhere"):
        run(recognise, "run", "new", "--memory", "nowhere")
    with pytest.raises(InputError, match="One image is explained at a time, not 2"):
        run(explain, "run", "new", "--memory", "memory")


def test_pictures_of_awkward_memories(place: Path) -> None:
    from vma.fewshot.figures import explained_png, imagined_png

    names = ["$x$ & _y_", "a" * 200, "字", None, *[as_label(i) for i in range(46)]]
    memory = load("run").remember(drawings(50, SIZE), names)
    for some in (memory, memory.forget(range(1, 50)), memory.relabel(range(50), "字")):
        assert imagined_png(some, some.imagine(20, seed=0)).startswith(b"\x89PNG")
        assert explained_png(some, some.explain(drawings(1, SIZE), samples=2)).startswith(b"\x89PNG")
