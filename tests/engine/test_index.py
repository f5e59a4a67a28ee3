"""The index on a server answers as the exact one does, to whoever asks."""

import time
from pathlib import Path

import numpy as np
import pytest
from tools.engine import Engine

from tests.helpers.indexes import check_best, check_changes, keys_of, place_of, take_in
from vma.errors import InputError
from vma.index import Index, Place
from vma.index.milvus import MilvusIndex

COUNT = 3000
LABELS = np.arange(COUNT) % 7
KEYS = keys_of(COUNT)
LONGEST = 60.0  # seconds until a client hears of what another has written


@pytest.fixture
def place(engine: Engine, collection: str, tmp_path: Path) -> Place:
    return place_of(tmp_path, KEYS, LABELS, server=engine.uri, name=collection, model="m" * 64)


@pytest.fixture
def index(place: Place) -> MilvusIndex:
    found = MilvusIndex(place)
    assert isinstance(found, Index)
    take_in(found, KEYS, LABELS)
    return found


def levels_of(index: MilvusIndex, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The consistency of each question that is asked from now on."""
    seen: list[str] = []
    real = index.server.ask

    def heard(request: str, *arguments: object, **options: object) -> object:
        if "consistency_level" in options:
            seen.append(str(options["consistency_level"]))
        return real(request, *arguments, **options)

    monkeypatch.setattr(index.server, "ask", heard)
    return seen


@pytest.mark.parametrize("listed", [False, True])
def test_it_finds_the_best_and_scores_them(index: MilvusIndex, listed: bool) -> None:
    if listed:
        index.save()
        assert index.listed()
    queries = 10 * KEYS[::300]
    scores = queries @ KEYS.T
    found = index.search(queries, 20)
    check_best(found, scores, bits=1e-4)
    everything = np.logaddexp.reduce(scores, axis=1)
    best = np.logaddexp.reduce(np.sort(scores, axis=1)[:, -20:], axis=1)
    ours = np.logaddexp.reduce(found.scores, axis=1)
    assert np.mean(best - ours) < 0.01  # nats lost to the exact index with as many candidates
    assert (ours <= everything).all()


@pytest.mark.parametrize("top", [2, 20])
def test_it_finds_the_best_of_a_label(index: MilvusIndex, top: int) -> None:
    """With 2 wanted, the 429 items of a label are looked for by the server; with 20, by their exact keys."""
    queries = 10 * KEYS[::300]
    within = index.search(queries, top, label=3)
    assert (LABELS[within.addresses] == 3).all()
    check_best(within, np.where(LABELS == 3, queries @ KEYS.T, -np.inf), bits=1e-4)


def test_what_is_deleted_is_not_found_and_what_is_added_again_is_found_once(index: MilvusIndex) -> None:
    check_changes(index, KEYS, LABELS)


def test_all_addresses_come_in_pages_and_messages_in_parts(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vma.index.milvus.SOME", 700)
    monkeypatch.setattr("vma.index.milvus.BYTES", 64_000)
    index = MilvusIndex(place)
    take_in(index, KEYS, LABELS, parts=1)
    assert sorted(index) == list(range(COUNT))
    index.delete(np.arange(0, COUNT, 2))
    assert sorted(index) == list(range(1, COUNT, 2))


def test_another_client_finds_what_was_written_and_deleted(index: MilvusIndex, place: Place) -> None:
    index.delete(np.array([7]))
    other = MilvusIndex(place)
    assert other.count() == COUNT - 1
    assert 7 not in other.search(KEYS[[7]], 5).addresses
    other.add(np.array([7]), KEYS[[7]], LABELS[[7]])
    assert other.search(KEYS[[7]], 1).addresses.tolist() == [[7]]
    end = time.monotonic() + LONGEST
    while index.search(KEYS[[7]], 1).addresses.tolist() != [[7]]:
        assert time.monotonic() < end, "a client that was open never hears of what another has written"


def test_the_first_question_after_a_change_waits_for_it_and_others_do_not(
    index: MilvusIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = levels_of(index, monkeypatch)
    for _ in range(3):
        index.search(KEYS[:1], 1)
    index.delete(np.array([0]))
    for _ in range(2):
        assert index.search(KEYS[:1], 1).addresses.tolist() != [[0]]
    assert levels == ["Strong", "Session", "Session", "Strong", "Session"]


def test_counting_is_by_a_query_as_statistics_lie(index: MilvusIndex) -> None:
    index.add(np.arange(100), KEYS[:100], LABELS[:100])
    index.delete(np.arange(50))
    index.save()
    assert index.count() == COUNT - 50
    assert index.server.ask("get_collection_stats", index.name)["row_count"] != COUNT - 50


def test_keys_of_another_model_or_size_are_refused(index: MilvusIndex, place: Place) -> None:
    with pytest.raises(InputError, match=r"holds keys of another model or something else: 'vma memory index"):
        MilvusIndex(Place(**{**vars(place), "model": "other"}))
    with pytest.raises(InputError, match="holds keys of another model"):
        MilvusIndex(Place(**{**vars(place), "matching": 8}))
