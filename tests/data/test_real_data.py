"""The real files: counts, content and the facts that their README states."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from vma.data import load_dataset
from vma.data.dataset import Dataset
from vma.data.mnist import read_amat
from vma.data.omniglot import TEST_ALPHABETS


@pytest.mark.parametrize(
    ("split", "part", "classes"),
    [
        ("45-5", "train", 1479),
        ("45-5", "test", 144),
        ("background-evaluation", "train", 964),
        ("background-evaluation", "test", 659),
    ],
)
def test_omniglot_splits(real_data: Path, split: str, part: str, classes: int) -> None:
    data = load_dataset("omniglot", part, split=split, data=real_data)
    assert data.size == (26, 26)
    assert data.is_binary
    assert data.split == f"{split}/{part}"
    assert data.class_counts().tolist() == [20] * classes
    assert len(set(data.classes)) == classes
    assert 0.12 < data.images.mean() / 255 < 0.15


def test_45_5_split_is_by_alphabet(real_data: Path) -> None:
    alphabets = {
        part: {name.split("/")[0] for name in load_dataset("omniglot", part, data=real_data).classes}
        for part in ("train", "test")
    }
    assert alphabets["test"] == set(TEST_ALPHABETS)
    assert len(alphabets["train"]) == 45
    assert not alphabets["train"] & alphabets["test"]


def by_class(data: Dataset) -> np.ndarray:
    """[classes, 20, pixels], drawers sorted so that their order does not matter."""
    images = data.images.reshape(len(data.classes), 20, -1)
    return np.stack([rows[np.lexsort(rows.T[::-1])] for rows in images])


@pytest.mark.parametrize("part", ["train", "test"])
def test_gmn_is_the_subsampled_original(real_data: Path, part: str) -> None:
    """All 32 460 images, `small[i, j] = original[r[i], r[j]]`; drawers come in another order."""
    gmn = load_dataset("omniglot-gmn", part, data=real_data)
    drawn = load_dataset("omniglot", part, split="background-evaluation", size=105, data=real_data)
    r = np.floor(np.arange(28) * 105 / 28).astype(int)
    small = Dataset("small", part, drawn.images[:, r][:, :, r], drawn.labels, drawn.classes, "")
    assert gmn.classes == drawn.classes
    assert gmn.is_binary
    np.testing.assert_array_equal(by_class(gmn), by_class(small))
    at_28 = load_dataset("omniglot", part, split="background-evaluation", size=28, data=real_data)
    np.testing.assert_array_equal(at_28.images, small.images)
    assert gmn.images.mean() / 255 == pytest.approx({"train": 0.0780, "test": 0.0843}[part], abs=5e-5)


def test_26_is_max_pooling_of_ink(real_data: Path) -> None:
    full = load_dataset("omniglot", "test", size=105, data=real_data).images
    small = load_dataset("omniglot", "test", size=26, data=real_data).images
    np.testing.assert_array_equal(small, full[:, :104, :104].reshape(-1, 26, 4, 26, 4).max(axis=(2, 4)))


def test_stand_in_has_15_and_5_drawers_of_each_character(real_data: Path) -> None:
    parts = {
        part: load_dataset("omniglot28-stand-in", part, data=real_data) for part in ("train", "valid", "test")
    }
    assert {part: len(data) for part, data in parts.items()} == {"train": 23000, "valid": 1345, "test": 8115}
    assert (parts["train"].class_counts() + parts["valid"].class_counts() == 15).all()
    assert (parts["test"].class_counts() == 5).all()
    assert parts["test"].provenance.startswith("Stand-in")


def test_stand_in_keeps_the_amount_of_ink(real_data: Path) -> None:
    """Area resizing keeps the mean, and all 20 drawings of every character are used exactly once."""
    parts = [load_dataset("omniglot28-stand-in", part, data=real_data) for part in ("train", "valid", "test")]
    full = [
        load_dataset("omniglot", part, size=105, split="background-evaluation", data=real_data).images
        for part in ("train", "test")
    ]
    ink = sum(int(data.images.sum(dtype=np.int64)) for data in parts) * 3.75**2
    assert ink == pytest.approx(sum(int(images.sum(dtype=np.int64)) for images in full), rel=2e-3)


@pytest.mark.parametrize(("part", "count", "mean"), [("train", 60000, 0.13066), ("test", 10000, 0.1325)])
def test_mnist(real_data: Path, part: str, count: int, mean: float) -> None:
    data = load_dataset("mnist", part, data=real_data)
    assert data.images.shape == (count, 28, 28)
    assert data.images.mean() / 255 == pytest.approx(mean, abs=5e-5)
    assert data.classes == tuple("0123456789")
    if part == "train":
        assert data.class_labels()[:5].tolist() == [5, 0, 4, 1, 9]


@pytest.mark.parametrize(
    ("part", "count", "mean", "md5"),
    [
        ("train", 50000, 0.130562, "db28b1a6ae0fe70cbd3da91acf46e477"),
        ("valid", 10000, 0.131127, "bf37822a04e94123630de6a7dfd9c9ef"),
        ("test", 10000, 0.132512, "14e41ae11040adba6ab8cb291eda0dd8"),
    ],
)
def test_binarized_mnist(
    real_data: Path, tmp_path: Path, part: str, count: int, mean: float, md5: str
) -> None:
    data = load_dataset("binarized-mnist", part, data=real_data)
    assert data.is_binary
    assert data.images.mean() / 255 == pytest.approx(mean, abs=5e-7)
    assert data.classes == tuple("0123456789")
    text = np.full((count, 784, 2), ord(" "), dtype=np.uint8)
    text[:, :, 0] = data.images.reshape(count, 784) // 255 + ord("0")
    text[:, -1, 1] = ord("\n")
    assert hashlib.md5(text.tobytes(), usedforsecurity=False).hexdigest() == md5
    name = f"binarized_mnist_{part}.amat.gz"
    (tmp_path / name).symlink_to(real_data.absolute() / name)
    without_npz = load_dataset("binarized-mnist", part, data=tmp_path)
    assert without_npz.labels is None
    np.testing.assert_array_equal(without_npz.images, data.images)
    if part == "test":
        (tmp_path / "plain.amat").write_bytes(text.tobytes())
        content = hashlib.sha256(data.images.tobytes().replace(b"\xff", b"\x01")).hexdigest()
        np.testing.assert_array_equal(
            read_amat(tmp_path / "plain.amat", count, content) * 255, data.images.reshape(-1, 784)
        )


def test_second_load_does_not_decode(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_dataset("omniglot", "test", data=real_data)
    monkeypatch.setattr("vma.data.omniglot.decode_archive", None)
    second = load_dataset("omniglot", "test", data=real_data)
    np.testing.assert_array_equal(first.images, second.images)
    assert first.classes == second.classes
