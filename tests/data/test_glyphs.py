"""The embedded dataset: the same bytes everywhere, and about as hard as Omniglot.

Measured in the same way on the 964 background characters of Omniglot, max-pooled to 26×26: ink 0.134, nearest
neighbour 0.62 of 5 ways and 0.42 of 20, distance within a class 0.79, between classes 0.98.
"""

import hashlib

import numpy as np
import pytest

from vma.data import glyphs
from vma.data.glyph_render import HAND, bell, draw, programs
from vma.data.glyph_strokes import DICE, MAX_STROKES, Character, Dice, invent, sine
from vma.data.glyphs import draw_glyphs
from vma.errors import InputError

STEADY = 0x7FFF_7FFF_8000_8000  # the word of which `bell` makes 0: a hand that does not jitter


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return draw_glyphs(classes=300, drawers=10, seed=0)


def character(number: int, seed: int = 0) -> Character:
    words = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(number,))).random_raw(DICE)
    return invent(Dice(words.tolist()))


def blurred(images: np.ndarray) -> np.ndarray:
    """Unit vectors of the images after a binomial blur of five pixels."""
    soft = np.pad((images > 0).astype(np.float64), [(0, 0)] * (images.ndim - 2) + [(2, 2)] * 2)
    for axis in (-1, -2):
        taps = [
            w * np.take(soft, range(i, soft.shape[axis] - 4 + i), axis) for i, w in enumerate((1, 4, 6, 4, 1))
        ]
        soft = np.sum(taps, axis=0)
    flat = soft.reshape(*images.shape[:-2], -1)
    return flat / np.linalg.norm(flat, axis=-1, keepdims=True)


def nearest_neighbour_accuracy(images: np.ndarray, ways: int, episodes: int = 2000) -> float:
    """Share of episodes in which the nearest of `ways` single examples is of the query's class."""
    vectors, rng, hits = blurred(images), np.random.default_rng(0), 0
    for _ in range(episodes):
        classes = rng.choice(len(images), ways, replace=False)
        example, query = rng.choice(images.shape[1], 2, replace=False)
        hits += np.argmax(vectors[classes, example] @ vectors[classes[0], query]) == 0
    return hits / episodes


@pytest.mark.parametrize(
    ("size", "digest"),
    [
        (26, "fb5c419bb2c5de7076ddce2a50d0d48dd823a9e3033e8554469fb16f2d3fada5"),
        (28, "6c5bc884e1915ce7b355376d3ae060aae31df8b5716829f9e40972b03e349070"),
        (105, "7db0ff4a75056b9a2e6c813c29739ffb4c2e35020fa7f5687bc9d223506f0ba6"),
    ],
)
def test_same_bytes_on_every_machine(size: int, digest: str) -> None:
    drawn = draw_glyphs(classes=40, drawers=5, seed=2017, size=size)
    assert hashlib.sha256(drawn.tobytes()).hexdigest() == digest


@pytest.mark.parametrize("size", [16, 26, 28, 41, 105])
def test_shape_and_values(size: int) -> None:
    drawn = draw_glyphs(classes=3, drawers=2, seed=1, size=size)
    assert drawn.shape == (3, 2, size, size)
    assert drawn.dtype == np.uint8
    assert set(np.unique(drawn)) == {0, 255}


def test_more_classes_or_drawers_leave_the_first_ones_alone() -> None:
    many = draw_glyphs(classes=9, drawers=7, seed=5)
    np.testing.assert_array_equal(draw_glyphs(classes=4, drawers=7, seed=5), many[:4])
    np.testing.assert_array_equal(draw_glyphs(classes=9, drawers=1, seed=5), many[:, :1])


@pytest.mark.parametrize("at_once", [1, 4, 20])
def test_images_do_not_depend_on_the_chunks(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = draw_glyphs(classes=9, drawers=7, seed=5)
    monkeypatch.setattr(glyphs, "AT_ONCE", at_once)
    np.testing.assert_array_equal(draw_glyphs(classes=9, drawers=7, seed=5), whole)


def test_seeds_are_different_worlds() -> None:
    worlds = [draw_glyphs(classes=1, drawers=1, seed=seed) for seed in (0, 1, 2**32, 2**80)]
    assert len({world.tobytes() for world in worlds}) == 4


def test_ink_share_is_that_of_omniglot(images: np.ndarray) -> None:
    share = (images > 0).mean(axis=(2, 3))
    assert 0.11 < share.mean() < 0.14
    assert share.min() > 0.02
    assert share.max() < 0.40


def test_nothing_is_clipped() -> None:
    drawn = draw_glyphs(classes=100, drawers=5, seed=0, size=105)
    edges = [drawn[..., 0, :], drawn[..., -1, :], drawn[..., :, 0], drawn[..., :, -1]]
    assert not any(edge.any() for edge in edges)


def test_no_two_of_500_classes_look_alike() -> None:
    """Blurred characters of a steady hand: the nearest two are 0.37 apart, two at random about 1."""
    steady = np.zeros((500, 26, 26), dtype=np.uint8)
    words = np.full((500, HAND), STEADY, dtype=np.uint64)
    draw(steady, programs([character(c) for c in range(500)]), words)
    vectors = blurred(steady)
    cosine = vectors @ vectors.T - 2 * np.eye(500)
    assert np.sqrt(2 - 2 * cosine.max()) > 0.3


def test_drawers_differ_but_less_than_classes(images: np.ndarray) -> None:
    vectors = blurred(images)
    within = np.linalg.norm(vectors[:, :-1] - vectors[:, 1:], axis=-1)
    between = np.linalg.norm(vectors[:-1] - vectors[1:], axis=-1)
    assert within.min() > 0.1
    assert 0.7 < within.mean() < 0.85
    assert 0.92 < between.mean() < 1.05


def test_nearest_neighbours_do_about_as_well_as_on_omniglot(images: np.ndarray) -> None:
    assert 0.58 < nearest_neighbour_accuracy(images, ways=5) < 0.72
    assert 0.38 < nearest_neighbour_accuracy(images, ways=20) < 0.52


def test_characters_have_one_to_four_strokes_pinned_to_earlier_ones() -> None:
    characters = [character(c, seed=3) for c in range(2000)]
    assert {len(c.strokes) for c in characters} == set(range(1, MAX_STROKES + 1))
    for c in characters:
        assert all(stroke.parent < i for i, stroke in enumerate(c.strokes) if i > 0)


def test_sine_is_close_to_the_sine() -> None:
    angle = np.arange(-(1 << 17), 1 << 17, 37)
    np.testing.assert_allclose(sine(angle) / 2**15, np.sin(angle * (2 * np.pi / 2**16)), atol=0.002)


def test_bell_has_its_mean_and_spread() -> None:
    sample = bell(np.random.PCG64(0).random_raw(100_000), spread=1000)
    assert abs(sample.mean()) < 5 * 1000 / np.sqrt(100_000)
    assert 980 < sample.std() < 1040
    assert bell(np.array([STEADY], dtype=np.uint64), spread=1000) == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"classes": 0}, "at least 1 class"),
        ({"drawers": -3}, "1 drawer, not 2 and -3"),
        ({"size": 15}, "sizes 16 to 105, not 15"),
        ({"size": 106}, "not 106"),
        ({"seed": -1}, "0 or more, not -1"),
    ],
)
def test_bad_input_is_named(changed: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        draw_glyphs(**({"classes": 2, "drawers": 2, "seed": 0} | changed))
