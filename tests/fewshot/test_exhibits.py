"""Answers in a notebook and as pictures: short, whole in themselves, and safe whatever a user named."""

import base64
import io
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image, ImageShow

from tests.helpers.oracles import small_mlp
from tests.helpers.trained_models import drawings, trained
from vma.errors import InputError
from vma.fewshot import ImageMemory
from vma.fewshot.exhibits import COLUMNS, MOST, ROWS, Card, Exhibit, Row, Showable, as_html, on_white, sheet

SIZE = (9, 8)
HOSTILE = "<script>alert(1)</script> \"quoted\" 'single' & more"


@pytest.fixture
def memory(tmp_path: Path) -> ImageMemory:
    model = trained(tmp_path / "characters", small_mlp(height=SIZE[0], width=SIZE[1]))
    memory = model.remember(drawings(5, SIZE), ["a", HOSTILE, HOSTILE, None, "a"])
    object.__setattr__(memory, "sources", (f'{HOSTILE}.png" onerror="x', *[None] * 4))
    return memory


class Seen(HTMLParser):
    """The tags, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def answers(memory: ImageMemory) -> dict[str, Showable]:
    """One of everything that can be shown."""
    x = drawings(2, SIZE, seed=9)
    found = memory.recognise(x)
    return {
        "memory": memory, "item": memory[0], "imagined": memory.imagine(6, seed=0), "recognised": found[0],
        "all recognised": found, "explained": memory.explain(x[0], samples=2),
    }  # fmt: skip


NAMES = ("memory", "item", "imagined", "recognised", "all recognised", "explained")


@pytest.mark.parametrize("name", NAMES)
def test_html_is_whole_in_itself_and_escapes_names(memory: ImageMemory, name: str) -> None:
    page = answers(memory)[name]._repr_html_()
    seen = Seen(page)
    assert {tag for tag, _ in seen.tags} <= {"div", "b", "span", "figure", "figcaption", "img"}
    allowed = {"style", "src", "alt", "title"}
    assert {key for _, attributes in seen.tags for key in attributes} <= allowed
    images = [attributes for tag, attributes in seen.tags if tag == "img"]
    assert images
    assert all((each["src"] or "").startswith("data:image/png;base64,") for each in images)
    assert "http" not in page
    assert "<script" not in page


def test_names_are_shown_as_they_are(memory: ImageMemory) -> None:
    seen = Seen(memory._repr_html_())
    assert HOSTILE in seen.text
    (first,) = [each for tag, each in seen.tags if tag == "img" and "onerror" in (each["title"] or "")]
    assert first["title"] == f'item 0, {HOSTILE}.png" onerror="x'


def test_thumbnails_are_the_images_as_dark_ink_on_white(memory: ImageMemory) -> None:
    sources = re.findall(r"base64,([^\"]+)", memory[1:2]._repr_html_())
    with Image.open(io.BytesIO(base64.b64decode(sources[0]))) as picture:
        np.testing.assert_array_equal(np.asarray(picture), 255 - 255 * memory.items[1].numpy())
    colour = torch.rand(3, 4, 5)
    shown = np.asarray(on_white(colour))
    np.testing.assert_array_equal(shown, 255 - (255 * np.moveaxis(colour.numpy(), 0, -1)).round())


@pytest.mark.parametrize("name", NAMES)
def test_reprs_are_short(memory: ImageMemory, name: str) -> None:
    text = repr(answers(memory.relabel([1, 2], "b"))[name])
    assert len(text.splitlines()) == 1
    assert len(text) < 250
    assert "tensor" not in text


def test_reprs_say_what_matters(memory: ImageMemory) -> None:
    named = memory.relabel([1, 2], "b")
    assert repr(named) == "ImageMemory(5 items of 2 classes: a, b; 9×8)"
    assert repr(named.relabel(range(5), None)) == "ImageMemory(5 items without labels; 9×8)"
    assert repr(named[4]) == "Item(4: a, 9×8)"
    assert repr(named.imagine(3, label="a", item=None, seed=0)).startswith("Imagined(3 images of a, from ")
    (found,) = named.recognise(drawings(1, SIZE))
    share = 100 * found.probabilities[found.label]
    numbers = ", ".join(str(number) for number, _ in found.items)
    assert repr(found) == f"Recognition({found.verdict}, {share:.0f} %; items {numbers})"
    assert re.fullmatch(r"Explanation\(\S+: \d+ % of q\(a\|x\); items .*; log_p .*, KL_a .*, KL_z .*\)",
                        repr(named.explain(drawings(1, SIZE), samples=2)))  # fmt: skip


def many(rows: int, cards: int) -> Exhibit:
    image = torch.eye(3)
    return Exhibit("many", tuple(Row(f"row {i}", (Card(image),) * cards) for i in range(rows)))


def test_a_notebook_shows_some_and_counts_the_rest() -> None:
    page = as_html(many(ROWS + 2, COLUMNS + 3))
    assert page.count("<img") == ROWS * COLUMNS
    assert page.count("<span>+ 3</span>") == ROWS
    assert "… and 2 more rows" in page


def test_a_picture_has_every_card_and_breaks_its_rows() -> None:
    one, two = (sheet(many(1, cards)) for cards in (COLUMNS, COLUMNS + 1))
    assert one.width == two.width
    ink = [np.asarray(picture.convert("L")) < 100 for picture in (one, two)]
    assert ink[0].sum() < ink[1].sum()
    assert two.height > one.height
    assert sheet(Exhibit("nothing", ())).width > 30
    with pytest.raises(InputError, match=f"{MOST} images at most, not {MOST + 1}"):
        sheet(many(1, MOST + 1))


@pytest.mark.parametrize("name", NAMES)
def test_everything_has_a_picture(memory: ImageMemory, name: str) -> None:
    picture = answers(memory)[name].picture()
    assert min(picture.size) > 80
    assert len(picture.getcolors(1 << 20)) > 10


def test_show_in_a_notebook(memory: ImageMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    shell = SimpleNamespace(kernel=object())
    display = SimpleNamespace(display=shown.append)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display))
    memory.show()
    assert shown == [memory]


def test_show_in_a_viewer_or_say_that_there_is_none(
    memory: ImageMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)
    seen: list[Image.Image] = []
    monkeypatch.setattr(ImageShow, "show", lambda picture: seen.append(picture) or True)
    memory.show()
    assert seen[0].size == memory.picture().size
    monkeypatch.setattr(ImageShow, "show", lambda picture: False)
    with pytest.raises(InputError, match="no viewer of pictures on this machine: write a file instead"):
        memory.show()


def test_recognitions_are_saved_as_a_picture_or_as_numbers(memory: ImageMemory, tmp_path: Path) -> None:
    found = memory.recognise(drawings(3, SIZE, seed=9))
    for name in ("r.png", "r.csv", "r.json"):
        found.save(tmp_path / name)
    with Image.open(tmp_path / "r.png") as picture:
        assert picture.size == found.picture().size
    rows = json.loads((tmp_path / "r.json").read_text())
    assert [(row["image"], row["label"]) for row in rows] == [(each.source, each.label) for each in found]
    for row, each in zip(rows, found, strict=True):
        assert row["probabilities"] == pytest.approx(each.probabilities)
        assert list(row["probabilities"]) == sorted(each.probabilities)
    assert (tmp_path / "r.csv").read_text().startswith("image,label,novel,p(")
    with pytest.raises(InputError, match=r"must end in \.png, \.csv or \.json"):
        found.save(tmp_path / "r.txt")
