"""Every step from a picture to the model's image: what it must not depend on."""

import hashlib
import io
import itertools
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given as given_any
from hypothesis import settings
from hypothesis import strategies as st
from PIL import Image

from tests.helpers.pages import apart, lit, sketch
from vma.data import FolderOptions
from vma.data.picture import DoubtfulPicture, Prepared, normalise, prepare, warn_of

SIZE = (26, 26)
USUAL = FolderOptions()
seeds = st.integers(0, 10**6)
given = lambda *kinds: lambda test: settings(max_examples=10)(given_any(*kinds)(test))  # noqa: E731


def ink(page: np.ndarray | Image.Image, options: FolderOptions = USUAL) -> np.ndarray:
    image = page if isinstance(page, Image.Image) else Image.fromarray(page)
    return prepare(image, SIZE, options).ink


def in_file(page: Image.Image, kind: str, orientation: int) -> Image.Image:
    """The page in a file whose EXIF says how to turn it."""
    exif = page.getexif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    page.save(file, format=kind, exif=exif)
    return Image.open(io.BytesIO(file.getvalue()))


# Each value of EXIF's orientation, and what undoes it
ORIENTATIONS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_a_picture_is_turned_the_way_its_camera_says(orientation: int, kind: str) -> None:
    page = Image.fromarray(sketch(3)[:, :200])
    stored = in_file(page.transpose(ORIENTATIONS[orientation]), kind, orientation)
    assert apart(ink(stored), ink(page)) == 0
    if kind != "TIFF":  # which Pillow turns by itself
        assert apart(ink(stored, replace(USUAL, upright=False)), ink(page)) > 0.2


@given(
    seeds, st.floats(0, 2 * np.pi), st.floats(0, 0.5), st.sampled_from([100, 140, 170]), st.floats(0.4, 0.9)
)
def test_the_light_makes_hardly_a_difference(
    seed: int, angle: float, fall: float, level: float, darkness: float
) -> None:
    """In one corner of the page there is as little as a third of the light in another."""
    page = sketch(seed)
    assert apart(ink(lit(page, angle, fall, level, darkness)), ink(page)) <= 0.03


def test_light_from_one_side_is_what_the_border_cannot_tell() -> None:
    page = sketch(1)
    photograph, even = lit(page, 0.3, 0.5, 170, darkness=0.4), replace(USUAL, uneven=False)
    assert apart(ink(photograph, even), ink(page)) > 0.2
    assert apart(ink(page, even), ink(page)) == 0


@given(seeds, st.floats(1.5, 14))
def test_every_pen_draws_the_same(seed: int, pen: float) -> None:
    assert apart(ink(sketch(seed, pen)), ink(sketch(seed, 5))) <= 0.05


@given(seeds, st.integers(120, 700), st.floats(0.4, 0.6), st.floats(0.4, 0.6))
def test_size_and_place_on_the_page_make_no_difference(seed: int, side: int, x: float, y: float) -> None:
    assert apart(ink(sketch(seed, side=side, at=(x, y))), ink(sketch(seed))) <= 0.05


@given(seeds, st.floats(3, 14))
def test_ink_has_omniglots_margin_and_width(seed: int, pen: float) -> None:
    found = ink(sketch(seed, pen)) > 0
    sides = [np.ptp(np.flatnonzero(found.any(axis))) + 1 for axis in (0, 1)]
    assert abs(max(sides) / 26 - (1 - 2 * USUAL.margin)) <= 2.5 / 26
    assert 0.03 < found.mean() < 0.3


@given(seeds, st.floats(3, 14), st.floats(0, 0.5))
def test_light_ink_on_dark_paper_is_the_same(seed: int, pen: float, fall: float) -> None:
    page = sketch(seed, pen)
    np.testing.assert_array_equal(ink(255 - page), ink(page))
    for invert, given_page in (("yes", page), ("no", 255 - page)):
        np.testing.assert_array_equal(ink(given_page, replace(USUAL, invert=invert)), ink(page))


@given(seeds, st.sampled_from(["LA", "RGBA", "PA"]))
def test_white_on_transparent_is_ink_and_so_is_black(seed: int, mode: str) -> None:
    page = sketch(seed)
    for level in (0, 255):
        picture = Image.merge("LA", (Image.new("L", page.shape[::-1], level), Image.fromarray(255 - page)))
        np.testing.assert_array_equal(ink(picture.convert(mode) if mode != "PA" else picture), ink(page))


def test_a_drawing_of_the_models_size_is_left_as_it_is() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        drawing = np.pad(rng.integers(0, 2, (24, 24)), 1).astype(np.uint8) * 255
        np.testing.assert_array_equal(ink(drawing), drawing)
        np.testing.assert_array_equal(ink(255 - drawing), drawing)


@given(seeds)
def test_dirt_on_the_paper_is_left_out(seed: int) -> None:
    page, rng = sketch(seed), np.random.default_rng(seed)
    dirty = page.copy()
    for y, x in rng.integers(0, 238, (6, 2)):
        dirty[y : y + 2, x] = 0
    assert apart(ink(dirty), ink(page)) <= 0.03


@given(seeds)
def test_noise_of_a_camera_is_no_ink(seed: int) -> None:
    page, rng = lit(sketch(seed), 1.0, 0.4), np.random.default_rng(seed)
    noisy = np.clip(page + rng.normal(0, 5, page.shape), 0, 255).astype(np.uint8)
    assert apart(ink(noisy), ink(page)) <= 0.03
    blank = np.clip(200 + rng.normal(0, 3, page.shape), 0, 255).astype(np.uint8)
    assert not ink(blank).any()


def test_filled_shapes_are_ink_to_their_middle() -> None:
    """However large they are: a pen's width of what was filled is left by thinning, and all of it without."""
    page = np.full((200, 200), 255, np.uint8)
    page[20:180, 20:180] = 0
    filled = ink(page, replace(USUAL, thin=False)) > 0
    assert filled[6:20, 6:20].all()
    assert ink(page).any()


def test_each_step_can_be_switched_off() -> None:
    page = sketch(2, pen=24, at=(0.35, 0.35))
    usual = ink(page) > 0
    assert (ink(page, replace(USUAL, thin=False)) > 0).sum() > 1.4 * usual.sum()
    rows = np.flatnonzero((ink(page, replace(USUAL, crop=False)) > 0).any(1))
    assert abs(rows.mean() - 0.35 * 26) < 2
    narrow = ink(sketch(2), replace(USUAL, margin=0.02)) > 0
    assert narrow.any(1).sum() >= 25 or narrow.any(0).sum() >= 25
    faint = 255 - (255 - page) // 5
    assert not ink(faint, replace(USUAL, level=False, thin=False)).any()
    assert apart(ink(faint), ink(page)) <= 0.05
    assert len(np.unique(ink(page, replace(USUAL, binarize=None)))) > 2


def test_an_enormous_picture_takes_no_time() -> None:
    page = sketch(4, side=3000)
    start = time.perf_counter()
    large = ink(page)
    assert time.perf_counter() - start < 20
    assert apart(large, ink(sketch(4))) <= 0.05


# What earlier versions made of pictures: a hash for each (level, crop, binarize), of that time's own code

EARLIER = {
    (False, False, 0.5): "bd233dc3c66b", (False, False, None): "44f5f75353ac",
    (False, True, 0.5): "228962398215", (False, True, None): "669d8a45d158",
    (True, False, 0.5): "49fb0b2a2dc5", (True, False, None): "9edb85feb468",
    (True, True, 0.5): "af82f501c2e0", (True, True, None): "531fcd46c234",
}  # fmt: skip


def rough_pages() -> Iterator[np.ndarray]:
    """Bars on grainy paper, some of them light on dark."""
    rng = np.random.default_rng(0)
    for number in range(12):
        height, width = rng.integers(20, 160, 2)
        page = np.full((height, width), rng.integers(150, 256), np.int64) - rng.integers(
            0, 12, (height, width)
        )
        for _ in range(4):
            y, x = rng.integers(0, height - 8), rng.integers(0, width - 8)
            page[y : y + rng.integers(2, height // 2), x : x + rng.integers(2, 8)] -= rng.integers(60, 140)
        levels = np.clip(page, 0, 255).astype(np.uint8)
        yield 255 - levels if number % 3 == 0 else levels


@pytest.mark.parametrize(("level", "crop", "binarize"), EARLIER)
def test_the_options_of_earlier_versions_give_the_same_bytes(
    level: bool, crop: bool, binarize: float | None
) -> None:
    options = FolderOptions(
        upright=False, uneven=False, thin=False, level=level, crop=crop, margin=0.1, binarize=binarize
    )
    found = b"".join(normalise(page, SIZE, options).ink.tobytes() for page in rough_pages())
    assert hashlib.sha256(found).hexdigest()[:12] == EARLIER[level, crop, binarize]


# Doubts


def scene(seed: int) -> np.ndarray:
    """Levels as those of photographs: amplitudes fall with the frequency."""
    rng = np.random.default_rng(seed)
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(200), np.fft.fftfreq(200)))
    waves = np.fft.fft2(rng.normal(size=(200, 200))) / np.maximum(frequency, 1 / 200)
    levels = np.fft.ifft2(waves).real
    return np.clip(127 + 50 * levels / levels.std(), 0, 255).astype(np.uint8)


def doubt(page: np.ndarray) -> str:
    return normalise(page, SIZE, USUAL).doubt or ""


def test_photographs_many_parts_and_little_ink_are_doubtful() -> None:
    assert sum("photograph" in doubt(scene(seed)) for seed in range(20)) >= 18
    rng, dots = np.random.default_rng(0), np.full((400, 400), 255, np.uint8)
    for y, x in rng.permutation(list(itertools.product(range(10, 390, 30), repeat=2)))[:40]:
        dots[y : y + 12, x : x + 12] = 0
    assert doubt(dots) == "it has 40 separate parts, more than a character has"
    dot = np.full((200, 200), 255, np.uint8)
    dot[100:103, 100:103] = 0
    assert doubt(dot) == "hardly any ink is left"


@given(seeds, st.floats(1.5, 14), st.floats(0, 0.5), st.floats(0.3, 0.95))
def test_a_drawing_is_beyond_doubt(seed: int, pen: float, fall: float, darkness: float) -> None:
    page, rng = lit(sketch(seed, pen), seed, fall, darkness=darkness), np.random.default_rng(seed)
    noisy = np.clip(page + rng.normal(0, 4, page.shape), 0, 255).astype(np.uint8)
    assert (doubt(page), doubt(noisy)) == ("", "")


def test_one_warning_names_all_doubtful_pictures() -> None:
    doubts = {f"{i}.png": "it is odd" if i % 2 else None for i in range(20)}
    with pytest.warns(DoubtfulPicture) as caught:
        warn_of(doubts)
    assert len(caught) == 1
    said = str(caught[0].message)
    assert said.startswith(
        "10 of 20 pictures may not be what the model needs, the drawing of one character: 1.png"
    )
    assert said.endswith("9.png (it is odd) and 5 more.")
    warn_of({"a.png": None})


def test_what_is_prepared_says_what_is_odd() -> None:
    assert isinstance(prepare(Image.fromarray(scene(0)), SIZE, USUAL), Prepared)
    assert prepare(Image.fromarray(scene(0)), SIZE, replace(USUAL, level=False)).doubt is None
