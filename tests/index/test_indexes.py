"""Indexes find what an exhaustive search finds, within what they promise."""

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.indexes import check_best, check_changes, keys_of, place_of, take_in
from vma.errors import InputError
from vma.index import NOWHERE, Index
from vma.index.embedded import FILE, FaissIndex, description
from vma.parts import INDEXES


def opened(name: str, folder: Path, count: int = 3000) -> tuple[Index, np.ndarray, np.ndarray]:
    keys, labels = keys_of(count), np.arange(count) % 7
    index = INDEXES[name](place_of(folder, keys, labels))
    assert isinstance(index, Index)
    take_in(index, keys, labels)
    return index, keys, labels


@pytest.mark.parametrize("name", ["exact", "faiss"])
def test_an_index_finds_the_best_and_scores_them(name: str, tmp_path: Path) -> None:
    index, keys, _ = opened(name, tmp_path)
    queries = 10 * keys[::300]
    found = index.search(queries, 20)
    scores = queries @ keys.T
    check_best(found, scores, bits=0.1 if name == "faiss" else 1e-4)  # 8 bits, times a query of length 10


@pytest.mark.parametrize(("name", "many"), [("exact", 10**6), ("faiss", 10**6), ("faiss", 0)])
def test_an_index_finds_the_best_of_a_label(
    name: str, many: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 20 wanted, the 429 items of a label are gone through; with 2 they are looked for in the lists."""
    monkeypatch.setattr("vma.index.embedded.MANY", many)
    index, keys, labels = opened(name, tmp_path)
    queries = 10 * keys[::300]
    scores = np.where(labels == 3, queries @ keys.T, -np.inf)
    for top in (2, 20):
        within = index.search(queries, top, label=3)
        assert (labels[within.addresses] == 3).all()
        best = np.sort(scores, axis=1)[:, ::-1][:, :top]
        exactly = np.take_along_axis(scores, within.addresses, 1)
        np.testing.assert_allclose(within.scores, exactly, rtol=1e-5)
        share = (within.scores >= best[:, [-1]] - 1e-4).mean()
        assert share > (0.98 if many or top > 2 else 0.6)  # of keys of 32 bits, the lists lose some


@pytest.mark.parametrize("name", ["exact", "faiss"])
def test_what_is_deleted_is_not_found_and_what_is_added_again_is_found_once(
    name: str, tmp_path: Path
) -> None:
    index, keys, labels = opened(name, tmp_path)
    check_changes(index, keys, labels)


def test_fewer_than_asked_for_are_filled_up(tmp_path: Path) -> None:
    index, keys, _ = opened("exact", tmp_path, count=3)
    found = index.search(keys[:1], 5)
    assert found.addresses.shape == (1, 5)
    assert (found.addresses[0, 3:] == NOWHERE).all()
    assert (found.scores[0, 3:] == -np.inf).all()


def test_faiss_is_kept_in_a_file_and_a_broken_one_is_named(tmp_path: Path) -> None:
    index, keys, _ = opened("faiss", tmp_path)
    before = index.search(keys[:9], 5).addresses
    index.save()
    again = FaissIndex(place_of(tmp_path, keys))
    np.testing.assert_array_equal(again.search(keys[:9], 5).addresses, before)
    again.delete(np.array([before[0, 0]]))
    assert again.count() == 2999
    (tmp_path / FILE).write_bytes(b"nothing")
    with pytest.raises(InputError, match="is not an index, or is damaged"):
        FaissIndex(place_of(tmp_path, keys))


def test_ten_million_keys_are_kept_in_four_bits() -> None:
    assert [description(n, 128) for n in (10**5, 10**6, 10**7)] == [
        "IVF1024,SQ8", "IVF4096,SQ8", "IVF8192,PQ64x4fs",
    ]  # fmt: skip


def test_fast_scan_lists_leave_out_what_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vma.index.embedded.MANY", 0)
    index, keys, _ = opened("faiss", tmp_path)
    assert isinstance(index, FaissIndex)
    assert index.fast_scan
    found = index.search(keys[::300], 10)
    exact = np.sort(keys[::300] @ keys.T, axis=1)[:, ::-1][:, :10]
    assert (found.scores >= exact[:, [-1]] - 1e-4).mean() > 0.6  # 32 bits for each key
    index.delete(found.addresses[0, :2])
    assert not set(found.addresses[0, :2]) & set(index.search(keys[:1], 10).addresses[0])
    assert index.count() == 2998
