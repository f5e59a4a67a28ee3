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
    index, keys, labels = opened(name, tmp_path)
    queries = 10 * keys[::300]
    found = index.search(queries, 20)
    scores = queries @ keys.T
    check_best(found, scores, bits=0.1 if name == "faiss" else 1e-4)  # 8 bits, times a query of length 10
    within = index.search(queries, 20, label=3)
    assert (labels[within.addresses] == 3).all()
    best = np.sort(np.where(labels == 3, scores, -np.inf), axis=1)[:, ::-1][:, :20]
    np.testing.assert_allclose(within.scores, best, rtol=1e-5)


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
