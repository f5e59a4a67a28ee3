"""Omniglot's archives, GMN's arrays and MNIST's files: how good ones are read and bad ones refused."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.data_files import (
    amat_bytes,
    archive_of,
    cut,
    drawings,
    idx_bytes,
    make_dataset,
    png_bytes,
    sha256,
    write_gzip,
    write_omniglot,
    write_zip,
)
from vma.data import cache
from vma.data.arrays import read_maybe_gzip, read_npz
from vma.data.gmn import TRAIN, GmnFile, load_gmn, read_gmn
from vma.data.mnist import load_binarized_mnist, load_mnist, read_amat, read_idx
from vma.data.omniglot import BACKGROUND, RESIZE, decode_archive, load_omniglot, resized_archive
from vma.errors import InputError


def test_archive_is_read_in_order_of_names(tmp_path: Path) -> None:
    images = drawings()
    path = write_omniglot(tmp_path / "a.zip", dict(reversed(images.items())))
    names, read = resized_archive(path, archive_of(images), "as-drawn")
    assert names == sorted(images)
    np.testing.assert_array_equal(read, [np.where(images[name], 0, 255) for name in names])


def test_folders_and_litter_in_an_archive_do_not_matter(tmp_path: Path) -> None:
    images = drawings()
    entries = {"images_background/": b"", "__MACOSX/x": b"?", "images_background/.DS_Store": b"?"}
    entries |= {name: png_bytes(white) for name, white in images.items()}
    arrays = decode_archive(write_zip(tmp_path / "a.zip", entries), archive_of(images))
    assert arrays["names"].tolist() == sorted(images)


def test_cut_archive(tmp_path: Path) -> None:
    images = drawings()
    path = cut(write_omniglot(tmp_path / "a.zip", images))
    with pytest.raises(InputError, match=r"a\.zip is not a complete zip archive"):
        decode_archive(path, archive_of(images))


def test_flipped_byte_in_an_archive(tmp_path: Path) -> None:
    images = drawings()
    path = write_omniglot(tmp_path / "a.zip", images)
    content = bytearray(path.read_bytes())
    content[2000] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(InputError, match="is damaged at images_background/Made"):
        decode_archive(path, archive_of(images))


def test_wrong_number_of_images(tmp_path: Path) -> None:
    path = write_omniglot(tmp_path / "a.zip", drawings())
    with pytest.raises(InputError, match="holds 6 images of 3 characters, not 19280 of 964"):
        decode_archive(path, BACKGROUND)


def test_other_drawings_than_omniglots(tmp_path: Path) -> None:
    path = write_omniglot(tmp_path / "a.zip", drawings(seed=1))
    with pytest.raises(InputError, match="other drawings"):
        decode_archive(path, archive_of(drawings(seed=0)))


@pytest.mark.parametrize(
    "name",
    [
        "../../outside.png",
        "images_background/../character01/0001_01.png",
        "/images_background/Made/character01/0001_01.png",
        "images_background/a\\..\\b/character01/0001_01.png",
        "images_background/Made/character01/notes.txt",
    ],
)
def test_odd_names_in_an_archive(tmp_path: Path, name: str) -> None:
    images = drawings()
    entries = {entry: png_bytes(white) for entry, white in images.items()} | {name: b"x"}
    with pytest.raises(InputError, match="unexpected entry"):
        decode_archive(write_zip(tmp_path / "a.zip", entries), archive_of(images))
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_archive_that_unpacks_to_too_much(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("images_background/Made/character01/0001_01.png", bytes(65 * 2**20))
    with pytest.raises(InputError, match="unpacks to 68157440 bytes, more than"):
        decode_archive(path, BACKGROUND)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"not a picture", "not a readable PNG"),
        (png_bytes(np.ones((105, 105), bool))[:60], "not a readable PNG"),
        (png_bytes(np.ones((104, 105), bool)), "not a drawing of 105×105"),
        (png_bytes(np.zeros((105, 105), np.uint8)), "not a drawing of 105×105 pixels of 1 bit"),
    ],
)
def test_bad_image_in_an_archive(tmp_path: Path, content: bytes, problem: str) -> None:
    images = drawings()
    entries = {name: png_bytes(white) for name, white in images.items()}
    last = max(entries)
    entries[last] = content
    with pytest.raises(InputError, match=problem) as caught:
        decode_archive(write_zip(tmp_path / "a.zip", entries), archive_of(images))
    assert last in str(caught.value)


def test_nothing_is_cached_for_a_bad_archive(tmp_path: Path, own_cache: Path) -> None:
    (tmp_path / "images_background.zip").write_bytes(b"PK, but not a zip")
    write_omniglot(tmp_path / "images_evaluation.zip", drawings())
    with pytest.raises(InputError, match=r"images_background\.zip is not a complete zip"):
        load_omniglot("train", data=tmp_path, download=False)
    assert not [path for path in own_cache.rglob("*") if path.is_file()]


def test_area_28_agrees_with_averaging_quarter_pixels() -> None:
    ink = np.random.default_rng(0).integers(0, 2, (3, 105, 105), dtype=np.uint8)
    quarters = ink.repeat(4, axis=1).repeat(4, axis=2).reshape(3, 28, 15, 28, 15)
    share = quarters.mean(axis=(2, 4))
    np.testing.assert_allclose(RESIZE["area-28"](ink), 255 * share, atol=0.5 + 1e-9)


def small_gmn(tmp_path: Path, **changed: np.ndarray) -> tuple[Path, GmnFile]:
    rng = np.random.default_rng(0)
    arrays = {
        f"images_background/Made/character{c:02d}": rng.choice(np.array([0, 255], np.uint8), (20, 784))
        for c in (2, 1)
    }
    content = sha256(b"".join(key.encode() + b"\n" + arrays[key].tobytes() for key in sorted(arrays)))
    np.savez(tmp_path / "gmn_train.npz", **(arrays | changed))
    return tmp_path / "gmn_train.npz", GmnFile(TRAIN.source, 2, content)


def test_gmn_polarity_and_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, file = small_gmn(tmp_path)
    monkeypatch.setattr("vma.data.gmn.FILES", {"train": file})
    data = load_gmn("train", data=tmp_path, download=False)
    raw = np.load(path)
    assert data.classes == ("Made/character01", "Made/character02")
    np.testing.assert_array_equal(
        data.images[:20].reshape(20, 784), 255 - raw["images_background/Made/character01"]
    )
    assert data.class_labels().tolist() == [0] * 20 + [1] * 20


def test_gmn_refusals(tmp_path: Path) -> None:
    path, file = small_gmn(tmp_path)
    with pytest.raises(InputError, match="holds 2 classes, not 964"):
        read_gmn(path, TRAIN)
    key = "images_background/Made/character01"
    path, _ = small_gmn(tmp_path, **{key: np.zeros((20, 784), np.uint8)})
    with pytest.raises(InputError, match="other images than those of sbos/gmn"):
        read_gmn(path, file)
    path, _ = small_gmn(tmp_path, **{key: np.zeros((19, 784), np.uint8)})
    with pytest.raises(InputError, match=r"uint8 \(19, 784\), not uint8 \(20, 784\)"):
        read_gmn(path, file)
    path, _ = small_gmn(tmp_path, **{"images_background/../character01": np.zeros((20, 784), np.uint8)})
    with pytest.raises(InputError, match="unexpected array"):
        read_gmn(path, file)
    with pytest.raises(InputError, match="not a complete zip"):
        read_gmn(cut(path), file)


class Bomb:
    """Unpickling this would raise."""

    def __reduce__(self) -> tuple:
        return (pytest.fail, ("a pickle was loaded",))


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", a=np.array([Bomb()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="pickled Python objects"):
        read_npz(tmp_path / "p.npz")


def test_npz_with_something_else_inside(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which is not an array"):
        read_npz(write_zip(tmp_path / "a.npz", {"../../etc/passwd": b""}))
    with pytest.raises(InputError, match=r"not a valid \.npy"):
        read_npz(write_zip(tmp_path / "a.npz", {"a.npy": b"nothing"}))
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(10))
    with pytest.raises(InputError, match="does not have the size its header declares"):
        read_npz(write_zip(tmp_path / "a.npz", {"a.npy": buffer.getvalue()[:-8]}))
    with pytest.raises(InputError, match="more than the 100 expected"):
        read_npz(write_zip(tmp_path / "a.npz", {"a.npy": buffer.getvalue()}), limit=100)


def test_gzip_that_unpacks_to_too_much(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than the 1000 bytes"):
        read_maybe_gzip(write_gzip(tmp_path / "big.gz", bytes(10**6)), 1000)


def test_idx_good_and_bad(tmp_path: Path) -> None:
    values = np.arange(5 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(5, 28, 28)
    content = idx_bytes(values)
    path = write_gzip(tmp_path / "i.gz", content)
    np.testing.assert_array_equal(read_idx(path, (5, 28, 28), sha256(content)), values)
    (tmp_path / "plain").write_bytes(content)
    np.testing.assert_array_equal(read_idx(tmp_path / "plain", (5, 28, 28), sha256(content)), values)
    with pytest.raises(InputError, match="not an IDX file of 6×28×28"):
        read_idx(path, (6, 28, 28), sha256(content))
    with pytest.raises(InputError, match="more than the 26 bytes expected"):
        read_idx(path, (5,), sha256(content))
    with pytest.raises(InputError, match="other values"):
        read_idx(path, (5, 28, 28), sha256(b"other"))
    with pytest.raises(InputError, match="cannot be read"):
        read_idx(cut(path), (5, 28, 28), sha256(content))
    (tmp_path / "plain").write_bytes(content[:-1])
    with pytest.raises(InputError, match="not an IDX file"):
        read_idx(tmp_path / "plain", (5, 28, 28), sha256(content))


def test_mnist_with_a_cut_file(tmp_path: Path) -> None:
    for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"):
        cut(write_gzip(tmp_path / name, idx_bytes(np.zeros(60000))))
    with pytest.raises(InputError, match=r"train-images-idx3-ubyte\.gz cannot be read"):
        load_mnist("train", data=tmp_path, download=False)


def test_amat_good_and_bad(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 2, (7, 784)).astype(np.uint8)
    text, right = amat_bytes(pixels), sha256(pixels.tobytes())
    path = write_gzip(tmp_path / "a.amat.gz", text)
    np.testing.assert_array_equal(read_amat(path, 7, right), pixels)
    with pytest.raises(InputError, match="not 8 lines"):
        read_amat(path, 8, right)
    with pytest.raises(InputError, match="other images"):
        read_amat(path, 7, sha256(b"other"))
    with pytest.raises(InputError, match="cannot be read"):
        read_amat(cut(path), 7, right)
    with pytest.raises(InputError, match="values other than 0 and 1"):
        read_amat(write_gzip(path, text.replace(b"1", b"2", 1)), 7, right)
    with pytest.raises(InputError, match="separated by one space"):
        read_amat(write_gzip(path, text.replace(b" ", b",", 1)), 7, right)
    with pytest.raises(InputError, match="not 7 lines"):
        read_amat(write_gzip(path, text[:-1]), 7, right)


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"other": np.zeros(3)}, "no array train_data"),
        ({"train_data": np.zeros((5, 784), np.uint8)}, r"not \(50000, 784\)"),
        ({"train_data": np.zeros((50000, 784), np.float32)}, "float32"),
        ({"train_data": np.full((50000, 784), 2, np.uint8)}, "other than 0 and 1"),
        ({"train_data": np.zeros((50000, 784), np.uint8)}, "other images"),
    ],
)
def test_bad_binarized_npz(tmp_path: Path, arrays: dict[str, np.ndarray], problem: str) -> None:
    np.savez_compressed(tmp_path / "binarized_mnist.npz", **arrays)
    with pytest.raises(InputError, match=problem):
        load_binarized_mnist("train", data=tmp_path, download=False)


def test_cache_is_used_rebuilt_and_left_clean(own_cache: Path) -> None:
    calls = []

    def build() -> dict[str, np.ndarray]:
        calls.append(1)
        return {"names": np.array(["a", "bc"]), "x": np.arange(5000)}

    for _ in range(2):
        arrays = cache.cached_arrays("key", build)
        assert arrays["names"].tolist() == ["a", "bc"]
        np.testing.assert_array_equal(arrays["x"], np.arange(5000))
    assert len(calls) == 1
    (path,) = (own_cache / "decoded").iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    np.testing.assert_array_equal(cache.cached_arrays("key", build)["x"], np.arange(5000))
    cut(path)
    np.testing.assert_array_equal(cache.cached_arrays("key", build)["x"], np.arange(5000))
    assert len(calls) == 3
    assert [entry.name for entry in (own_cache / "decoded").iterdir()] == [path.name]


def test_interrupted_write_leaves_nothing(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(file: io.BufferedWriter, **arrays: object) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(KeyboardInterrupt):
        cache.cached_arrays("key", lambda: {"x": np.zeros(1)})
    assert not list((own_cache / "decoded").iterdir())


def test_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way of a folder")
    monkeypatch.setenv("VMA_CACHE", str(tmp_path / "file"))
    np.testing.assert_array_equal(cache.cached_arrays("key", lambda: {"x": np.ones(1)})["x"], [1.0])


def test_classes_can_be_held_out() -> None:
    data = make_dataset([3, 4, 5, 6])
    kept, held_out = data.hold_out_classes(1, seed=3)
    assert set(kept.classes) | set(held_out.classes) == set(data.classes)
    assert len(kept.classes) == 3
    assert len(kept) + len(held_out) == len(data)
    for part in (kept, held_out):
        sizes = dict(zip(data.classes, data.class_counts(), strict=True))
        assert part.class_counts().tolist() == [sizes[name] for name in part.classes]
    chosen = data.subset_classes(["class2", "class0"])
    np.testing.assert_array_equal(chosen.images[chosen.labels == 1], data.images[data.labels == 0])
    with pytest.raises(InputError, match="Unknown class 'class9'"):
        data.subset_classes(["class9"])
    with pytest.raises(InputError, match="Cannot hold out 4 of 4"):
        data.hold_out_classes(4)
