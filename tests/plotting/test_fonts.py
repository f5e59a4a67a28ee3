"""Names in any script: a font that has their letters is found, and nothing is drawn where there is none."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib.font_manager import fontManager
from PIL import Image

from vma.data import Dataset, contact_sheet
from vma.plotting import fonts
from vma.plotting.explained import Explained, explained_png, without_name
from vma.plotting.imagined import NamedItems, imagined_png
from vma.plotting.wording import breadth

LETTER, NOWHERE = (
    "\U0010ff01",
    "\U0010fffd",
)  # for private use: no font has them but the one that is made here


def forget() -> None:
    for each in (fonts.families, fonts.letters, fonts.file_with):
        each.cache_clear()


@pytest.fixture
def own_font(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A font with one letter, a square, which was installed after matplotlib had made its list."""
    pen = TTGlyphPen(None)
    for place in ((0, 0), (0, 800), (800, 800), (800, 0)):
        (pen.moveTo if place == (0, 0) else pen.lineTo)(place)
    pen.closePath()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "square"])
    builder.setupCharacterMap({ord(LETTER): "square"})
    builder.setupGlyf({".notdef": TTGlyphPen(None).glyph(), "square": pen.glyph()})
    builder.setupHorizontalMetrics({".notdef": (900, 0), "square": (900, 0)})
    builder.setupHorizontalHeader(ascent=900, descent=-200)
    builder.setupNameTable({"familyName": "Made Sans", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(tmp_path / "made.ttf")
    monkeypatch.setattr(fonts, "findSystemFonts", lambda: [str(tmp_path / "made.ttf")])
    monkeypatch.setattr(fontManager, "ttflist", list(fontManager.ttflist))
    forget()
    yield tmp_path / "made.ttf"
    fontManager._findfont_cached.cache_clear()
    forget()


def test_usual_letters_need_no_other_font() -> None:
    assert fonts.families("ka 7 Ωж") == (fonts.USUAL,)


def test_a_font_that_has_the_letter_is_found(own_font: Path) -> None:
    assert fonts.families(f"a{LETTER}") == (fonts.USUAL, "Made Sans")
    assert fonts.file_with(LETTER) == (str(own_font), 0)


def test_a_letter_that_no_font_has_is_known_to_be_missing(own_font: Path) -> None:
    assert fonts.families(f"{LETTER}{NOWHERE}") is None
    assert fonts.file_with(f"a{NOWHERE}") is None


def memory(name: str) -> NamedItems:
    return NamedItems(np.eye(6)[None].repeat(2, 0), [name, name], [True, True])


def drawn(name: str) -> np.ndarray:
    """The picture of two items of that name, with two samples each."""
    png = imagined_png(memory(name), [0, 0, 1, 1], list(np.eye(6)[None].repeat(4, 0)))
    return np.asarray(Image.open(io.BytesIO(png)).convert("L")).astype(int)


def test_a_name_that_no_font_has_is_left_out_of_pictures(own_font: Path) -> None:
    left_out, empty, named = (drawn(name) for name in (NOWHERE, " ", LETTER))
    assert np.array_equal(left_out, empty)
    assert (named < 128).sum() > (empty < 128).sum() + 50
    assert without_name(NamedItems(np.eye(6)[None].repeat(2, 0), ["a", NOWHERE], [True, True]), NOWHERE) == (
        "the class of item 1"
    )
    found = Explained(np.eye(6), np.eye(6), NOWHERE, 0.9, np.array([0.9, 0.1]), [0, 1], -9.0, 1.0, 2.0)
    assert explained_png(memory(NOWHERE), found).startswith(b"\x89PNG")  # a box would have been a warning


def test_contact_sheets_leave_out_what_no_font_has(own_font: Path) -> None:
    def sheet(name: str) -> np.ndarray:
        images, labels = np.zeros((2, 9, 9), np.uint8), np.zeros(2, np.int64)
        return np.asarray(contact_sheet(Dataset("made", "all", images, labels, (name,), "Made up")))

    assert np.array_equal(sheet(NOWHERE), sheet(""))
    assert sheet(LETTER).shape != sheet("").shape or not np.array_equal(sheet(LETTER), sheet(""))


def test_letters_of_some_scripts_are_wide() -> None:
    assert breadth("ab") == 2
    assert breadth("漢") == 1.8
    assert breadth("e\u0301") == 1
