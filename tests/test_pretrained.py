"""The models in the box: complete, described truly, and of use at once."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

import vma
from benchmarks.shipped_models import PAGE, ROOT, page
from vma import cli, pretrained
from vma.data import load_dataset
from vma.errors import InputError
from vma.pretrained import DEFAULT, card_of, pretrained_names, weights_of
from vma.storage import load_model

CLASSES, TRIALS = 5, 30
NAMES = pretrained_names()


def test_names() -> None:
    assert NAMES == ["omniglot", "omniglot-crisp"]
    assert DEFAULT in NAMES
    assert {path.stem for path in pretrained.FOLDER.glob("*.safetensors")} == set(NAMES)
    with pytest.raises(InputError, match=r"Unknown model in the box 'omnigolt'.*Did you mean 'omniglot'"):
        card_of("omnigolt")


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_small_and_finite(name: str) -> None:
    assert weights_of(name).stat().st_size < 3e6
    model = load_model(weights_of(name))
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float16}
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    assert next(vma.load(name).model.parameters()).dtype == torch.float32


def test_damaged_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(pretrained.FOLDER, tmp_path / "box")
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path / "box")
    file = tmp_path / "box/omniglot.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(InputError, match="weights of the model 'omniglot' are missing or damaged"):
        vma.load("omniglot")
    file.unlink()
    with pytest.raises(InputError, match="missing or damaged: install the package again"):
        vma.load("omniglot")


@pytest.mark.parametrize("name", NAMES)
def test_cards_say_what_was_measured(name: str) -> None:
    card = card_of(name)
    answers = {each.answer: json.loads((ROOT / each.answer).read_text()) for each in card.numbers}
    assert {answer["model"]["weights"] for answer in answers.values()} == {card.sha256[:16]}
    first, *tasks, last = card.numbers
    assert first.value == answers[first.answer]["results"]["nll"]["value"]
    found = [task["by_address"]["value"] for task in answers[tasks[0].answer]["results"]["tasks"]]
    assert [each.value for each in tasks] == found
    assert last.value == answers[last.answer]["results"]["areas"]["joined"]["value"]


def test_the_page_shows_the_cards() -> None:
    assert PAGE.read_text() == page()


@pytest.mark.parametrize("name", NAMES)
def test_invented_characters_are_recognised_at_first_sight(name: str) -> None:
    torch.set_default_dtype(torch.float32)
    data = load_dataset("glyphs", "test", size=26)
    model, source, right = vma.load(name), np.random.default_rng(0), 0
    by_class = [np.flatnonzero(data.class_labels() == c) for c in range(len(data.classes))]
    for _ in range(TRIALS):
        classes = source.choice(len(by_class), CLASSES, replace=False)
        item, target = np.array([source.choice(by_class[c], 2, replace=False) for c in classes]).T
        memory = model.remember(data.images[item] / 255.0, [str(c) for c in classes])
        right += memory.recognise(data.images[target[:1]] / 255.0, by="address")[0].label == str(classes[0])
    # A guess is right once in five; 18 or more of 30 has a chance of less than one in a million then.
    assert right >= 18


@pytest.fixture
def pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of symbols, a new drawing of one of them, and nothing that was trained."""
    torch.set_default_dtype(torch.float32)
    data = load_dataset("glyphs", "test", size=26)
    for c in range(3):
        for number, i in enumerate(np.flatnonzero(data.class_labels() == c)[:3]):
            path = tmp_path / (f"symbols/{c}/{number}.png" if number < 2 else f"new{c}.png")
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(255 - data.images[i]).save(path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("pictures")
def test_commands_need_no_training(capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["recognise", "new0.png", "new1.png", "--memory", "symbols", "--out", "default.csv"])
    cli.run(["recognise", DEFAULT, "new0.png", "new1.png", "--memory", "symbols", "--out", "named.csv"])
    assert Path("default.csv").read_bytes() == Path("named.csv").read_bytes()
    cli.run(["score", "new0.png", "--memory", "symbols", "--samples", "4"])
    cli.run(["explain", "new0.png", "--memory", "symbols", "--samples", "4", "--out", "why.json"])
    cli.run(["imagine", "--memory", "symbols", "--n", "2"])
    cli.run(["imagine", "omniglot", "--memory", "symbols", "--n", "2", "--out", "soft.png"])
    assert "2 images from" in capsys.readouterr().out
    assert Path("imagined.png").read_bytes() != Path("soft.png").read_bytes()


@pytest.mark.usefixtures("pictures")
def test_a_model_without_images_is_a_sentence() -> None:
    with pytest.raises(InputError, match="omniglot is a model: name an image"):
        cli.run(["recognise", "omniglot", "--memory", "symbols"])
    with pytest.raises(InputError, match="One image is explained at a time, not 2"):
        cli.run(["explain", "new0.png", "new1.png", "--memory", "symbols"])


def test_the_list_and_the_cards(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    cli.run(["models"])
    assert f"{DEFAULT} (default)" in capsys.readouterr().out
    cli.run(["models", "omniglot"])
    shown = capsys.readouterr().out
    assert str(card_of("omniglot").numbers[0]) in shown
    assert "not good for" in shown


def test_half_the_size_is_written_on_request(tmp_path: Path) -> None:
    cli.run(["export", "omniglot", str(tmp_path / "half.safetensors"), "--half"])
    written, shipped = load_file(tmp_path / "half.safetensors"), load_file(weights_of("omniglot"))
    assert written.keys() == shipped.keys()
    assert all(written[name].equal(shipped[name]) for name in shipped)
