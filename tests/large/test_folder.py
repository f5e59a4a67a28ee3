"""Memories on disk: what is acknowledged is there, probabilities add up, and what is broken is said."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers.large_folders import NORM, filled, some_rows
from vma.errors import InputError
from vma.large import SearchedItems, Writer, open_snapshot
from vma.large.indexing import open_index, read_saved, save_index
from vma.large.snapshot import SEGMENTS, Snapshot
from vma.large.verifying import check, check_files
from vma.masses import SCALE, masses_of
from vma.proposals import SearchedMemory


def total_probability(snapshot: Snapshot) -> Fraction:
    """Σ p(a), exactly, from the masses of the items that are there."""
    masses = snapshot.prior.mass(snapshot.alive())
    return sum((Fraction(float(mass)) * 2**SCALE for mass in masses), Fraction()) / int(
        snapshot.manifest.total
    )


def test_what_is_written_is_read_whatever_the_pieces(tmp_path: Path) -> None:
    items, keys, scores = some_rows(30)
    for pieces in (1, 3, 30):
        found = open_snapshot(filled(tmp_path / str(pieces), 30, pieces))
        a = np.array([29, 0, 17, 17])
        np.testing.assert_array_equal(found.items[a], items[a])
        np.testing.assert_array_equal(found.keys[a], keys[a])
        np.testing.assert_array_equal(found.prior.mass(a), masses_of(scores[a], NORM))
        assert found.texts(a) == (None, "class 0", "class 2", "class 2")
        assert found.sources([3, 29]) == ["file 3", "file 29"]
        assert (len(found), len(found.all_sources()), total_probability(found)) == (30, 30, 1)
        assert len(found.manifest.segments) <= 5


def test_items_keep_their_numbers_when_others_are_forgotten(tmp_path: Path) -> None:
    folder, (_, keys, _) = filled(tmp_path / "m"), some_rows(30)
    with Writer(folder) as writer:
        writer.forget([3, 29])
        writer.relabel([0, 1], "other")
        writer.add(*some_rows(2, seed=1), ["new", "other"])
        writer.relabel([30], None)
    found = open_snapshot(folder)
    assert (len(found), found.rows, total_probability(found)) == (30, 32, 1)
    np.testing.assert_array_equal(found.keys[np.array([28])], keys[[28]])
    assert found.texts(np.array([0, 1, 2, 30, 31])) == ("other", "other", "class 2", None, "other")
    assert found.of_label("other").tolist() == [0, 1, 31]
    with pytest.raises(InputError, match=r"has no items \[29\]"):
        found.check([29])
    with pytest.raises(InputError, match="Unknown label 'nothing'"):
        found.of_label("nothing")
    with Writer(folder) as writer, pytest.raises(InputError, match="keep at least one"):
        writer.forget(found.alive())


def test_an_open_memory_is_what_it_was_while_another_process_writes(tmp_path: Path) -> None:
    folder, (items, _, _) = filled(tmp_path / "m", pieces=1), some_rows(30)
    before = open_snapshot(folder)
    with Writer(folder) as writer:
        for seed in range(12):
            writer.add(*some_rows(10, seed), [None] * 10)
    np.testing.assert_array_equal(before.items[np.arange(30)], items)
    assert (len(before), len(open_snapshot(folder))) == (30, 150)


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    folder = filled(tmp_path / "m")
    with Writer(folder), pytest.raises(InputError, match="is being changed by another process"):
        Writer(folder)
    Writer(folder).lock.release()


def test_a_file_that_was_cut_or_is_damaged_is_named(tmp_path: Path) -> None:
    folder = filled(tmp_path / "m", pieces=1)
    (path,) = (folder / SEGMENTS).glob("*.safetensors")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(InputError, match=r"it was cut short or changed; bring it back"):
        open_snapshot(folder)
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(InputError, match="is damaged"):
        check_files(open_snapshot(folder), lambda done, total: None)
    path.unlink()
    with pytest.raises(InputError, match="is missing"):
        open_snapshot(folder)
    (folder / "memory.json").write_text("{")
    with pytest.raises(InputError, match="cannot be read as that of a memory"):
        open_snapshot(folder)
    with pytest.raises(InputError, match=r"is not a memory: it has no memory\.json"):
        open_snapshot(tmp_path)


def test_a_full_disk_is_said_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = filled(tmp_path / "m")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with Writer(folder) as writer:
        monkeypatch.setattr("os.fsync", full)
        with pytest.raises(InputError, match="No space left on device"):
            writer.add(*some_rows(4, 9), [None] * 4)
        monkeypatch.undo()
        writer.add(*some_rows(4, 9), [None] * 4)
    found = open_snapshot(folder)
    assert (len(found), total_probability(found)) == (34, 1)


def test_what_a_killed_process_left_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    folder = filled(tmp_path / "m")
    (folder / SEGMENTS / "00000099-0000.safetensors").write_bytes(b"half")
    (folder / SEGMENTS / ".x.1.partial").write_bytes(b"half")
    known = {f"{entry.name}.safetensors" for entry in open_snapshot(folder).manifest.segments}
    with Writer(folder):
        assert {path.name for path in (folder / SEGMENTS).iterdir()} == known


@pytest.mark.parametrize("name", ["exact", "faiss"])
def test_an_index_is_kept_and_brought_up_to_date(name: str, tmp_path: Path) -> None:
    folder = filled(tmp_path / "m", 400)
    snapshot = open_snapshot(folder)
    save_index(snapshot, open_index(snapshot, name), name)
    with Writer(folder) as writer:
        writer.forget([5, 6])
        writer.add(*some_rows(20, 3), [None] * 20)
    snapshot = open_snapshot(folder)
    saved = read_saved(folder)
    assert saved is not None
    assert (saved.name, saved.rows) == (name, 400)
    index = open_index(snapshot, name)
    assert sorted(index) == snapshot.alive().tolist()
    assert index.count() == len(snapshot)
    found = check(snapshot, index, snapshot.keys[np.arange(0, 400, 40)] * 20, 64)
    assert (found.items, found.found, found.mass) == (418, 418, 1.0)
    assert found.nats_lost < 1e-4


def test_a_search_hides_what_is_forgotten_and_what_it_finds_twice(tmp_path: Path) -> None:
    snapshot = open_snapshot(filled(tmp_path / "m"))
    memory = SearchedItems.of(snapshot, open_index(snapshot, "exact"), candidates=40)
    assert isinstance(memory, SearchedMemory)
    assert memory.seen(np.array([[4, 4, -1, 2, 99]])).tolist() == [[4, 2, -1, -1, -1]]
    rest = memory.without(np.array([0, 7]))
    query = torch.from_numpy(snapshot.keys[np.array([7])])
    assert memory.search(query)[0, 0] == 7
    assert sorted(rest.search(query)[0].tolist()) == [-1] * 12 + sorted(set(range(30)) - {0, 7})
    p = rest.prior()
    assert float(p.log_prob(torch.arange(30)).exp().sum()) == pytest.approx(1, abs=1e-12)
    assert p.log_prob(torch.tensor([7])) == -np.inf
    np.testing.assert_allclose(memory.read(torch.tensor([3])) * 255, snapshot.items[np.array([3])], rtol=1e-6)
