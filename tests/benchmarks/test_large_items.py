"""Items of large memories: drawn by a loop as by the package, and keys that are moved where none are drawn."""

from pathlib import Path

import numpy as np

from benchmarks.large_items import BLOCK, CHARACTERS, DRAWERS, SIZE, characters, varied
from benchmarks.quick_items import drawn_quickly


def test_a_loop_draws_what_the_package_draws() -> None:
    expected = characters(17, 4)
    with drawn_quickly():
        found = characters(17, 4)
    assert expected.any()
    np.testing.assert_array_equal(found, expected)


def test_moved_keys_have_the_spread_of_drawings_of_a_character(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    characters_at = draw.normal(size=(CHARACTERS, 8))
    keys = (characters_at + 0.1 * draw.normal(size=(DRAWERS, CHARACTERS, 8))).reshape(BLOCK, 8)
    keys = (keys / np.linalg.norm(keys, axis=1, keepdims=True)).astype(np.float32)
    bits = np.zeros(BLOCK * SIZE * SIZE // 8, np.uint8)
    np.savez(tmp_path / "00000.npz", bits=bits, keys=keys)
    images, moved = varied(tmp_path, 0, 7)
    assert images.shape == (BLOCK, SIZE, SIZE)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 1, atol=1e-5)
    by_hand = keys.reshape(DRAWERS, CHARACTERS, 8)
    within = np.sqrt(((by_hand - by_hand.mean(0)) ** 2).sum(2).mean())
    away = np.sqrt(((moved - keys) ** 2).sum(1).mean())
    assert 0.7 < away / within < 1.3
    np.testing.assert_array_equal(varied(tmp_path, 0, 7)[1], moved)
    assert not np.array_equal(varied(tmp_path, 0, 8)[1], moved)
