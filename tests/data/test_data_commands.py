"""`vma data list | show | verify | fetch`, and the loader by name."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.helpers.data_files import make_dataset
from vma import cli
from vma.data import DATASETS, Dataset, GlyphOptions, contact_sheet, load_dataset
from vma.data.omniglot28 import CHARDATA
from vma.data.sources import check_published, git_blob_id
from vma.errors import InputError


def test_list_names_every_dataset(capsys: pytest.CaptureFixture[str], own_cache: Path) -> None:
    cli.run(["data", "list"])
    out = capsys.readouterr().out
    for name in DATASETS:
        assert f"\n {name} " in out
    assert "to fetch" in out
    assert str(own_cache) in out.replace("\n", "")


def test_list_knows_what_is_here(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "images_background.zip").write_bytes(bytes(100_000))
    (tmp_path / "binarized_mnist.npz").write_bytes(bytes(1_200_000))
    cli.run(["data", "list", "--data", str(tmp_path)])
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.split()}
    assert "1 of 2 files" in rows["omniglot"]
    assert "ready" in rows["binarized-mnist"]
    assert "1.2 MB" in rows["binarized-mnist"]
    assert "to fetch" in rows["mnist"]


def test_show_writes_a_sheet_of_a_users_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        (tmp_path / "mine" / name).mkdir(parents=True)
        Image.new("L", (40, 30), "white").save(tmp_path / "mine" / name / "x.png")
    out = tmp_path / "sheet.png"
    cli.run(["data", "show", "folder", "--data", str(tmp_path / "mine"), "--out", str(out)])
    assert "folder all: 2 images of 2 classes, 28×28, 0.0000 ink" in capsys.readouterr().out
    with Image.open(out) as sheet:
        assert sheet.format == "PNG"
    cli.run(
        [
            "data",
            "show",
            "folder",
            "--data",
            str(tmp_path / "mine"),
            "--out",
            str(out),
            "--folder.invert",
            "no",
            "--folder.no-level",
            "--folder.no-crop",
            "--folder.no-thin",
        ]
    )
    assert "0.7857 ink" in capsys.readouterr().out  # 22 rows of 28, since the page is not square
    with pytest.raises(InputError, match="Cannot write"):
        cli.run(
            [
                "data",
                "show",
                "folder",
                "--data",
                str(tmp_path / "mine"),
                "--out",
                str(tmp_path / "no" / "x.png"),
            ]
        )


def test_sheet_shows_dark_ink_upright_in_rows_of_a_class() -> None:
    images = np.zeros((4, 28, 28), np.uint8)
    images[:, 0, :] = 255  # ink along the top
    data = Dataset("made", "train", images, np.array([0, 1, 0, 1]), ("a", "b"), "")
    sheet = np.asarray(contact_sheet(data, rows=2, columns=2).convert("L")).astype(int)
    rows = np.flatnonzero((sheet < 60).sum(axis=1) >= 112)
    assert rows.tolist() == [92, 93, 152, 153]
    assert sheet[96:140, -60:-30].min() > 240


def test_sheet_of_images_without_labels_and_of_odd_sizes() -> None:
    data = make_dataset([30], side=105)
    bare = Dataset("bare", "train", data.images, None, (), "")
    wide = contact_sheet(bare, rows=2, columns=5)
    assert wide.size[1] == contact_sheet(make_dataset([9, 9]), rows=2, columns=5).size[1]
    with pytest.raises(InputError, match="at least one row"):
        contact_sheet(data, rows=0)


def test_sheet_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_dataset([9, 9])
    usual = contact_sheet(data, rows=2, columns=5)
    monkeypatch.setattr(sys.modules["vma.data.contact_sheet"], "find_spec", lambda name: None)
    assert contact_sheet(data, rows=2, columns=5).size[1] == usual.size[1]


def test_verify_glyphs(capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["data", "verify", "glyphs"])
    out = capsys.readouterr().out
    assert "ok      glyphs train: 10000 images of 500 classes, 26×26" in out
    assert "ok      glyphs test: 2000 images of 100 classes, 26×26" in out


def test_verify_real_files(
    real_data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VMA_DATA", str(real_data))
    cli.run(["data", "verify", "omniglot-gmn"])
    assert "659 classes" in capsys.readouterr().out


def test_verify_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("gmn_train.npz", "gmn_test.npz"):
        (tmp_path / name).write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"2 part\(s\) failed: .*gmn_train.* not a complete zip"):
        cli.run(["data", "verify", "omniglot-gmn", "--data", str(tmp_path)])
    assert capsys.readouterr().out.count("FAILED") == 2
    with pytest.raises(InputError, match="downloading is switched off"):
        cli.run(["data", "verify", "mnist"])


def test_verify_compares_the_file_where_nothing_is_known_of_its_images(tmp_path: Path) -> None:
    """Whatever images a file of the right shape holds, it is not Burda's."""
    (tmp_path / "chardata.mat").write_bytes(b"of the right shape, perhaps")
    with pytest.raises(
        InputError, match=r"chardata.mat is not the file that was published.*Get it from https"
    ):
        cli.run(["data", "verify", "omniglot28", "--data", str(tmp_path)])
    right = replace(CHARDATA, git_blob=git_blob_id(tmp_path / "chardata.mat"))
    check_published(right, tmp_path / "chardata.mat")


def test_fetch_finds_what_is_here(real_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.run(["data", "fetch", "omniglot-gmn", "--data", str(real_data)])
    out = capsys.readouterr().out
    assert "gmn_train.npz (0.9 MB)" in out
    assert "1 dataset(s) verified: omniglot-gmn." in out
    cli.run(["data", "fetch", "glyphs"])
    assert "needs no download" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("omniglott", {}, "Unknown dataset 'omniglott': choose one of .* Did you mean 'omniglot'"),
        ("omniglot", {"part": "valid"}, "Unknown part of omniglot 'valid': choose one of train, test"),
        ("omniglot", {"size": 32}, "no images of size 32: choose one of 26, 28, 105"),
        ("omniglot", {"split": "30-20"}, "Unknown split of omniglot '30-20': choose one of 45-5"),
        ("mnist", {"split": "45-5"}, "mnist has only one split"),
    ],
)
def test_unknown_names(name: str, arguments: dict, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        load_dataset(name, **arguments)


def test_glyphs_are_cached_and_split_by_class(monkeypatch: pytest.MonkeyPatch) -> None:
    options = GlyphOptions(classes=6, test_classes=2, drawers=3, seed=5)
    train = load_dataset("glyphs", "train", size=20, glyphs=options)
    test = load_dataset("glyphs", "test", size=20, glyphs=options)
    assert (train.images.shape, test.images.shape) == ((12, 20, 20), (6, 20, 20))
    assert not set(train.classes) & set(test.classes)
    assert train.is_binary
    assert 0.03 < train.images.mean() / 255 < 0.5
    assert train.class_counts().tolist() == [3] * 4
    monkeypatch.setattr("vma.data.glyphs.draw_glyphs", None)
    again = load_dataset("glyphs", "test", size=20, glyphs=options)
    np.testing.assert_array_equal(again.images, test.images)
    with pytest.raises(InputError, match="cannot keep 6 of 6"):
        load_dataset("glyphs", glyphs=GlyphOptions(classes=6, test_classes=6))
