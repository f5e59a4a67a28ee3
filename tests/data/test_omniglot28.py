"""Burda's `chardata.mat`: its layout, its parts, and files that are not it."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from tests.helpers.data_files import cut
from vma.data.arrays import read_mat
from vma.data.omniglot28 import columns_to_images, load_omniglot28
from vma.errors import InputError

KINDS = {
    "u1": (9, 2),
    "f8": (6, 9),
    "f4": (7, 7),
    "i4": (12, 5),
}  # dtype -> (class of matrix, type of element)


def element(kind: int, content: bytes, order: str = "<") -> bytes:
    return struct.pack(f"{order}II", kind, len(content)) + content + bytes(-len(content) % 8)


def matrix(name: str, values: np.ndarray, order: str = "<", matrix_class: int | None = None) -> bytes:
    """A matrix as MATLAB writes it; a short name goes into a small element."""
    mat_class, kind = KINDS[values.dtype.str[1:]]
    flags = element(6, struct.pack(f"{order}II", matrix_class or mat_class, 0), order)
    sizes = element(5, struct.pack(f"{order}{values.ndim}i", *values.shape), order)
    if len(name) <= 4:
        title = struct.pack(f"{order}I", len(name) << 16 | 1) + name.encode().ljust(4, b"\0")
    else:
        title = element(1, name.encode(), order)
    numbers = values.astype(values.dtype.newbyteorder(order)).tobytes(order="F")
    return element(14, flags + sizes + title + element(kind, numbers, order), order)


def packed(content: bytes) -> bytes:
    squeezed = zlib.compress(content, level=1)
    return struct.pack("<II", 15, len(squeezed)) + squeezed


def header(order: str = "<") -> bytes:
    return (
        b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(f"{order}H", 0x0100) + {"<": b"IM", ">": b"MI"}[order]
    )


@pytest.mark.parametrize("order", ["<", ">"])
def test_matrices_of_every_kind(tmp_path: Path, order: str) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "abc": rng.integers(0, 9, (3, 5)).astype("u1"),
        "longname": rng.random((2, 3, 4)),
        "f": rng.random((1, 7)).astype("f4"),
    }
    content = b"".join(matrix(name, values, order) for name, values in arrays.items())
    (tmp_path / "a.mat").write_bytes(
        header(order) + content + matrix("text", np.zeros((1, 2)), order, matrix_class=4)
    )
    read = read_mat(tmp_path / "a.mat")
    assert sorted(read) == sorted(arrays)
    for name, values in arrays.items():
        np.testing.assert_array_equal(read[name], values)


def test_doubles_stored_as_bytes_and_packed(tmp_path: Path) -> None:
    content = matrix("data", np.arange(6, dtype="u1").reshape(2, 3), matrix_class=6)
    (tmp_path / "a.mat").write_bytes(header() + packed(content) + packed(matrix("b", np.ones((1, 1)))))
    read = read_mat(tmp_path / "a.mat")
    np.testing.assert_array_equal(read["data"], [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(read["b"], [[1.0]])


@pytest.mark.parametrize("compressed", [False, True])
def test_files_that_scipy_writes(tmp_path: Path, compressed: bool) -> None:
    rng = np.random.default_rng(1)
    arrays = {"data": rng.random((784, 5)), "target": np.eye(5, dtype=np.uint8), "t": np.arange(5.0)[None]}
    scipy.io.savemat(tmp_path / "a.mat", arrays, do_compression=compressed)
    read = read_mat(tmp_path / "a.mat")
    for name, values in arrays.items():
        np.testing.assert_array_equal(read[name], values)


def test_broken_files(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    good = header() + packed(matrix("data", np.random.default_rng(0).random((20, 20))))
    for bad in (b"", b"short", good[:-100], good[:127], header() + good[128:200], b"\x89HDF".ljust(600)):
        path.write_bytes(bad)
        with pytest.raises(InputError, match=r"a\.mat is not a complete MATLAB 5 file"):
            read_mat(path)
    sizes = matrix("data", np.zeros((20, 20))).replace(
        struct.pack("<ii", 20, 20), struct.pack("<ii", 20, 2000)
    )
    path.write_bytes(header() + sizes)
    with pytest.raises(InputError, match="not of the size it declares"):
        read_mat(path)
    path.write_bytes(header() + packed(bytes(1008)))
    with pytest.raises(InputError, match="cut or too large"):
        read_mat(path, limit=1000)


def test_what_would_crash_scipy(tmp_path: Path) -> None:
    """An unknown type of numbers; and a complex matrix, for which scipy reads on where no imaginary part is."""
    path, good = tmp_path / "a.mat", matrix("data", np.ones((4, 5)))
    path.write_bytes(header() + good.replace(struct.pack("<II", 9, 160), struct.pack("<II", 200, 160)))
    with pytest.raises(InputError, match="not of the size it declares"):
        read_mat(path)
    path.write_bytes(header() + good.replace(struct.pack("<II", 6, 0), struct.pack("<II", 0x806, 0)) + good)
    assert list(read_mat(path)) == ["data"]  # of the second matrix


def test_what_would_fill_the_memory(tmp_path: Path) -> None:
    path, zeros = tmp_path / "a.mat", packed(matrix("data", np.zeros((2, 300))))
    path.write_bytes(header() + zeros)
    assert read_mat(path, limit=6000)["data"].shape == (2, 300)
    path.write_bytes(header() + zeros * 2)
    with pytest.raises(InputError, match="cut or too large"):
        read_mat(path, limit=6000)
    path.write_bytes(header() + matrix("data", np.zeros((2, 300))))
    with pytest.raises(InputError, match="holds more than the 4000 bytes expected"):
        read_mat(path, limit=4000)
    path.write_bytes(header() + packed(zeros))
    assert read_mat(path) == {}  # packed twice is no matrix


def test_columns_are_images_column_by_column(tmp_path: Path) -> None:
    image = np.random.default_rng(0).integers(0, 256, (28, 28))
    column = (image / 255).ravel(order="F")[:, None]
    np.testing.assert_array_equal(columns_to_images(column, tmp_path)[0], image)
    with pytest.raises(InputError, match=r"outside \[0, 1\]"):
        columns_to_images(column * 2, tmp_path)
    with pytest.raises(InputError, match="of which 100% have no ink"):
        columns_to_images(column * 0, tmp_path)


def chardata(n_train: int = 24345, n_test: int = 8070, labels: bool = True) -> bytes:
    """A file of the right shape: image n is grey level n mod 256 at row 3, column 5."""
    parts = []
    for prefix, count in (("", n_train), ("test", n_test)):
        pixels = np.zeros((784, count), "f4")
        pixels[5 * 28 + 3] = np.arange(count) % 256 / 255
        alphabet, character = np.arange(count) % 1623 % 50, np.arange(count) % 1623 // 50 + 1
        target = (np.arange(50)[:, None] == alphabet).astype("u1")
        parts += [(f"{prefix}data", pixels)]
        if labels:
            parts += [(f"{prefix}target", target), (f"{prefix}targetchar", character[None].astype("f8"))]
    return header() + b"".join(packed(matrix(name, values)) for name, values in parts)


def test_parts_of_chardata(tmp_path: Path) -> None:
    (tmp_path / "chardata.mat").write_bytes(chardata())
    parts = {
        part: load_omniglot28(part, data=tmp_path, download=False) for part in ("train", "valid", "test")
    }
    assert {part: len(data) for part, data in parts.items()} == {"train": 23000, "valid": 1345, "test": 8070}
    assert len({data.classes for data in parts.values()}) == 1
    assert len(parts["train"].classes) == 1623
    assert parts["test"].images[:, 3, 5].tolist() == [n % 256 for n in range(8070)]
    assert parts["test"].images.sum() == parts["test"].images[:, 3, 5].sum()
    assert parts["test"].classes[parts["test"].class_labels()[1]] == "alphabet02/character01"
    assert (parts["train"].class_counts() + parts["valid"].class_counts() == 15).all()
    levels = np.concatenate([parts[part].images[:, 3, 5] for part in ("train", "valid")])
    np.testing.assert_array_equal(np.bincount(levels), np.bincount(np.arange(24345) % 256))


def test_chardata_without_labels(tmp_path: Path) -> None:
    (tmp_path / "chardata.mat").write_bytes(chardata(labels=False))
    valid = load_omniglot28("valid", data=tmp_path, download=False)
    assert len(valid) == 1345
    assert (valid.labels, valid.classes) == (None, ())


def test_chardata_with_wrong_counts_or_cut(tmp_path: Path, own_cache: Path) -> None:
    path = tmp_path / "chardata.mat"
    path.write_bytes(chardata(n_train=100, n_test=10))
    with pytest.raises(InputError, match=r"has \(784, 100\) as data, not \(784, 24345\)"):
        load_omniglot28("train", data=tmp_path, download=False)
    cut(path)
    with pytest.raises(InputError, match="not a complete MATLAB 5 file"):
        load_omniglot28("train", data=tmp_path, download=False)
    path.write_bytes(header() + matrix("other", np.zeros((2, 2))))
    with pytest.raises(InputError, match="has nothing as data"):
        load_omniglot28("train", data=tmp_path, download=False)
    assert not [entry for entry in own_cache.rglob("*") if entry.is_file()]
