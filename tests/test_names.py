"""Names that command a terminal, a spreadsheet or a page, and names of any encoding."""

import csv
import io
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vma.data.folder import load_folder
from vma.data.picture import FolderOptions
from vma.errors import InputError
from vma.fewshot.images import as_ink
from vma.fewshot.items import as_label
from vma.fewshot.tables import as_csv
from vma.names import FORMULAS, TURNING, UNPRINTABLE, cell, label_of, plain

NAMES = st.text(st.characters(codec=None)) | st.binary().map(os.fsdecode)


@given(NAMES)
def test_plain_names_command_nothing_and_can_be_written(name: str) -> None:
    for made in (plain(name), label_of(name)):
        made.encode()
        assert not any(unicodedata.category(letter) in UNPRINTABLE for letter in made)
        assert not TURNING & set(made)
        assert plain(made) == made


@given(st.text(st.characters(categories=["L", "N", "P", "S", "M"])))
def test_names_that_can_be_shown_stay_what_they_are(name: str) -> None:
    assert plain(name) == name


def test_two_ways_to_write_a_letter_are_one_label() -> None:
    assert label_of("e\u0301te\u0301") == label_of("\u00e9t\u00e9") == "été"
    assert as_label(" e\u0301\n") == "é\\n"
    assert as_label("\x1b[31mred\u202e") == "\\x1b[31mred\\u202e"
    with pytest.raises(InputError, match="A label must be text"):
        as_label(" ")


@given(NAMES, NAMES)
def test_no_cell_of_a_table_is_a_formula(image: str, label: str) -> None:
    rows = [{"image": plain(image), "label": label_of(label), "probabilities": {label_of(label): 1.0}}]
    header, row = csv.reader(io.StringIO(as_csv(rows).decode(), newline=""))
    assert header == ["image", "label", f"p({label_of(label)})"]
    assert not any(each.startswith(FORMULAS) for each in row)
    assert row[2] == "1.0"


def test_numbers_of_a_table_stay_numbers() -> None:
    assert as_csv([{"image": "=x", "log_p": -3.5}]) == b"image,log_p\n'=x,-3.5\n"
    assert [cell(text) for text in ("=a", "+a", "-a", "@a", "a=", "")] == [
        "'=a",
        "'+a",
        "'-a",
        "'@a",
        "a=",
        "",
    ]


STRANGE = [
    b"caf\xe9",
    b"\xff\xfe",
    b"two\nlines",
    b"\x1b[2Jclear",
    b"=1+1",
    b"$\\frac",
    "日本".encode(),
    "e\u0301".encode(),
]


@pytest.fixture
def strange_folder(tmp_path: Path) -> Path:
    """Classes with names that are no UTF-8, commands, formulas."""
    picture = np.full((12, 12), 255, np.uint8)
    picture[3:9, 5:7] = 0
    for name in STRANGE:
        folder = os.path.join(os.fsencode(tmp_path / "data"), name)  # noqa: PTH118
        os.makedirs(folder)  # noqa: PTH103
        for number in range(2):
            Image.fromarray(picture).save(Path(os.fsdecode(folder)) / f"{number}.png")
    return tmp_path / "data"


def test_class_names_of_any_encoding(strange_folder: Path) -> None:
    found = load_folder("all", size=12, data=strange_folder, folder=FolderOptions())
    expected = {
        "caf\\udce9",
        "\\udcff\\udcfe",
        "two\\nlines",
        "\\x1b[2Jclear",
        "=1+1",
        "$\\frac",
        "日本",
        "é",
    }
    assert set(found.classes) == expected
    ink = as_ink(strange_folder, (12, 12))
    assert set(ink.labels) == expected
    assert len(ink) == 2 * len(STRANGE)
    "".join(ink.names).encode()


def test_a_terminal_that_knows_ascii_alone(strange_folder: Path) -> None:
    """Strange names in a table and in an error: one line each, nothing that the terminal would obey."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "200"}
    command = [sys.executable, "-m", "vma", "recognise", str(strange_folder), "--memory", str(strange_folder)]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout
    assert b"caf\\udce9" in done.stdout
    assert done.stdout.count(b"\n") == 1 + 2 * len(STRANGE)
    missing = os.fsdecode(b"no\xff\nsuch\x1b[2J")
    done = subprocess.run([*command[:-1], missing], env=environment, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"\x1b" not in done.stderr
    assert done.stderr.count(b"\n") == 1
