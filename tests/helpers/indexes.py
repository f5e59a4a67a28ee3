"""Keys in clusters, and the place of an index of them."""

from pathlib import Path

import numpy as np

from vma.index import NO_LABEL, Found, Index, Place

MATCHING = 16


def keys_of(count: int) -> np.ndarray:
    """Keys of length 1 in 40 clusters, as examples of a class are."""
    draw = np.random.default_rng(5)
    keys = draw.normal(size=(40, MATCHING))[draw.integers(0, 40, count)] + 0.3 * draw.normal(
        size=(count, MATCHING)
    )
    return (keys / np.linalg.norm(keys, axis=1, keepdims=True)).astype(np.float32)


def place_of(folder: Path, keys: np.ndarray, labels: np.ndarray | None = None, **engine: str) -> Place:
    """The place of an index of these keys; `engine` says which server, and what it calls them."""
    numbers = np.full(len(keys), NO_LABEL) if labels is None else labels
    return Place(
        folder, keys.shape[1], len(keys), keys.__getitem__, lambda: numbers, lambda count: keys[:count], **engine
    )  # fmt: skip


def take_in(index: Index, keys: np.ndarray, labels: np.ndarray, parts: int = 4) -> None:
    """Add all keys, in several parts."""
    for part in np.array_split(np.arange(len(keys)), parts):
        index.add(part, keys[part], labels[part])


def check_best(found: Found, scores: np.ndarray, bits: float) -> None:
    """The scores are those of the items, in order, and next to all items are among the best."""
    top = found.addresses.shape[1]
    expected = np.sort(scores, axis=1)[:, ::-1][:, :top]
    exactly = np.take_along_axis(scores, found.addresses, 1)
    np.testing.assert_allclose(found.scores, exactly, atol=bits)
    assert (exactly >= expected[:, [-1]] - bits).mean() > 0.98
    assert (np.diff(found.scores, axis=1) <= 0).all()


def check_changes(index: Index, keys: np.ndarray, labels: np.ndarray) -> None:
    """What is deleted is not found, and what is added again is found once; the index holds all keys at first."""
    every = set(range(len(keys)))
    index.delete(np.array([0, 300, len(keys) - 1]))
    assert index.count() == len(keys) - 3
    assert not {0, 300} & set(index.search(keys[[0, 300]], 10).addresses.flatten().tolist())
    again = np.array([300, 301])
    index.add(again, keys[again], labels[again])
    assert index.count() == len(keys) - 2
    assert index.search(keys[[300]], 5).addresses[0].tolist().count(300) == 1
    assert sorted(index) == sorted(every - {0, len(keys) - 1})
