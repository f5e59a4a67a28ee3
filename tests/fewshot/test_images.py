"""Images of every kind become the same ink."""

import os
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.helpers.trained_models import drawings
from vma.data import FolderOptions
from vma.data.picture import DoubtfulPicture
from vma.errors import InputError
from vma.fewshot.images import OPTIONS, as_ink

SIZE = (26, 26)
DRAWING = drawings(1, SIZE)[0]
SIGN = np.zeros(SIZE, np.uint8)  # a flag on its pole
SIGN[4:22, 8] = SIGN[4, 8:19] = SIGN[12, 8:19] = SIGN[4:13, 18] = 1
LARGE = SIGN.repeat(4, 0).repeat(4, 1)
PLAIN = FolderOptions(level=False, uneven=False, crop=False, thin=False, binarize=0.5)  # only fitted


def ink(images: Any, options: FolderOptions | None = None) -> np.ndarray:
    return as_ink(images, SIZE, options).images.numpy()


def saved(path: Path, array: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)
    return path


def kind(images: Any) -> str:
    """A name for a case of a test."""
    return f"{type(images).__name__}-{getattr(images, 'dtype', getattr(images, 'mode', ''))}"


@pytest.mark.parametrize("options", [None, PLAIN, FolderOptions(binarize=None)])
def test_binary_images_of_the_models_size_pass_unchanged(options: FolderOptions | None) -> None:
    images = drawings(50, SIZE, seed=3)
    np.testing.assert_array_equal(ink(images, options), images)
    np.testing.assert_array_equal(ink(torch.from_numpy(images).double(), options), images)


@pytest.mark.parametrize(
    "images",
    [
        DRAWING,
        DRAWING.astype(bool),
        DRAWING.astype(np.int64) * 255,
        DRAWING.astype(np.float32),
        DRAWING.astype(np.float64) * 0.7,
        1 - DRAWING,
        (1 - DRAWING).astype(np.float32) * 0.8,
        255 - 100 * DRAWING,
        DRAWING[None],
        DRAWING[None, None],
        DRAWING.tolist(),
        [DRAWING.astype(bool)],
        torch.from_numpy(DRAWING).to(torch.bfloat16),
        Image.fromarray(255 - 255 * DRAWING).convert("RGB"),
    ],
    ids=kind,
)
def test_every_kind_of_drawing_of_the_models_size_gives_the_same_ink(images: Any) -> None:
    np.testing.assert_array_equal(ink(images), DRAWING[None])


@pytest.mark.parametrize(
    "images",
    [
        LARGE * 255,
        1.0 - LARGE,
        torch.from_numpy(LARGE),
        np.stack([255 - 255 * LARGE] * 3, -1),
        np.stack([0 * LARGE] * 3 + [255 * LARGE], -1),
        np.stack([255 + 0 * LARGE] * 3 + [255 * LARGE], -1),
        np.stack([255 * LARGE] * 3, -1)[None],
        Image.fromarray(LARGE * 255),
        Image.fromarray(LARGE.astype(bool)),
    ],
    ids=kind,
)
def test_every_kind_of_larger_picture_gives_the_same_ink(images: Any) -> None:
    np.testing.assert_array_equal(ink(images, PLAIN), SIGN[None])
    np.testing.assert_array_equal(ink(images), ink(255 - 255 * LARGE))


def test_files_folders_and_lists_of_anything(tmp_path: Path) -> None:
    file = saved(tmp_path / "one.png", 255 - 255 * LARGE)
    saved(tmp_path / "b" / "2.png", 255 * LARGE)
    saved(tmp_path / "a" / "1.png", 255 * LARGE)
    saved(tmp_path / ".hidden" / "1.png", 255 * DRAWING)
    (tmp_path / "notes.txt").write_text("not an image")
    folder = as_ink(tmp_path, SIZE)
    assert folder.labels == (None, "a", "b")
    assert [Path(name).name for name in folder.names] == ["one.png", "1.png", "2.png"]
    mixed = as_ink([str(file), LARGE, Image.fromarray(255 * LARGE), np.stack([LARGE] * 2)], SIZE)
    assert mixed.names[1:] == ("image 2 of 5", "image 3 of 5", "image 4 of 5", "image 5 of 5")
    for images in (folder.images, mixed.images):
        np.testing.assert_array_equal(images.numpy(), np.repeat(ink(LARGE), len(images), axis=0))
    assert as_ink(folder, SIZE) is folder


def test_photographs_pencil_and_thin_lines_keep_their_strokes() -> None:
    rng = np.random.default_rng(0)
    shading = np.linspace(215, 190, LARGE.shape[1]) + rng.normal(0, 4, LARGE.shape)
    photograph = (shading - 90 * LARGE).astype(np.uint8)
    np.testing.assert_array_equal(ink(photograph), ink(LARGE))
    thin = np.full((520, 520), 255, np.uint8)
    thin[100:400, 301:304] = 0
    line = ink(thin)[0]
    assert line[5:21].any(1).all()
    assert line.sum() < 40
    with pytest.raises(InputError, match="no ink"):
        ink(thin, PLAIN)


def test_one_warning_names_the_pictures_that_are_no_drawings(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        saved(tmp_path / f"{name}.png", rng.integers(0, 255, (12, 12), np.uint8).repeat(20, 0).repeat(20, 1))
    saved(tmp_path / "fine.png", 255 * LARGE)
    with pytest.warns(
        DoubtfulPicture, match=r"^2 of 3 pictures may not be .*a\.png \(it .*b\.png \(it "
    ) as caught:
        ink(tmp_path)
    assert len(caught) == 1


def test_a_stack_of_images_of_the_models_size_is_not_taken_for_one_in_colour() -> None:
    stack = drawings(5, (4, 4), seed=1)
    np.testing.assert_array_equal(as_ink(stack, (4, 4)).images.numpy(), stack)


def test_wide_models_get_wide_images_without_distortion() -> None:
    square = np.zeros((40, 40), np.uint8)
    square[10:30, 10:30] = 255
    found = as_ink(square, (20, 40), replace(PLAIN, invert="no")).images[0].numpy()
    rows, columns = np.flatnonzero(found.any(1)), np.flatnonzero(found.any(0))
    assert (rows[0], rows[-1], columns[0], columns[-1]) == (5, 14, 15, 24)


def with_value(value: float) -> np.ndarray:
    image = DRAWING.astype(np.float64)
    image[3, 3] = value
    return image


BAD = {
    "There are no images": [],
    "The image is empty: its shape is [0, 26, 26]": np.zeros((0, 26, 26)),
    "There is no ink in image 2 of 3": np.stack([DRAWING, 0 * DRAWING, DRAWING]),
    "There is no ink in image 1 of 1": np.full((30, 30), 255, np.uint8),
    "Image 2 of 2 holds NaN": [DRAWING, with_value(np.nan)],
    "The image holds NaN or infinite": with_value(-np.inf),
    "The image must have values from 0 to 1, but they range from 0 to 3": with_value(3.0),
    "The image must have values from 0 to 255, but they range from -5 to 1": with_value(-5).astype(int),
    "The image has the shape [26]": DRAWING[0],
    "Image 1 of 1 has the shape [2, 2, 26, 26]": [np.ones((2, 2, 26, 26))],
    "The image is a object": object(),
    "The image is a ndarray": np.array(["a", "b"]),
    "The image is not an array of numbers": [[1.0, 0.0], [1.0]],
    "There is no image file or folder": "nowhere.png",
}


@pytest.mark.parametrize(("message", "images"), BAD.items(), ids=BAD)
def test_a_bad_image_is_named_in_one_sentence(message: str, images: Any) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        ink(images)
    assert str(caught.value).count(". ") == 0


def test_bad_files(tmp_path: Path) -> None:
    broken = tmp_path / "images" / "broken.png"
    broken.parent.mkdir()
    broken.write_bytes(b"not a picture")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(
        InputError, match=r"broken\.png cannot be read as an image: it is of no known kind\.$"
    ):
        ink(broken)
    with pytest.raises(InputError, match=r"1 of 1 images .* cannot be read"):
        ink(tmp_path / "images")
    with pytest.raises(InputError, match="holds no images"):
        ink([DRAWING, empty])
    cut = tmp_path / "cut.png"
    saved(cut, np.random.default_rng(0).integers(0, 255, (90, 90), np.uint8))
    cut.write_bytes(cut.read_bytes()[:2000])
    with Image.open(cut) as opened, pytest.raises(InputError, match="The image cannot be read"):
        ink(opened)


def test_a_pipe_among_pictures_is_not_opened(tmp_path: Path) -> None:
    """It would be waited for without end."""
    pipe = tmp_path / "letters" / "a.png"
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    for given in (tmp_path, [tmp_path]):
        with pytest.raises(InputError, match="cannot be read: letters/a"):
            ink(given)
    with pytest.raises(InputError, match="There is no image file or folder"):
        ink(pipe)


def test_an_enormous_file_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    def chunk(kind: bytes, content: bytes) -> bytes:
        body = kind + content
        return len(content).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

    header = (60_000).to_bytes(4, "big") * 2 + bytes([8, 0, 0, 0, 0])
    bomb = tmp_path / "bomb.png"
    content = zlib.compress(bytes(100_000))
    bomb.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", content) + chunk(b"IEND", b"")
    )
    with pytest.raises(InputError, match=r"bomb\.png cannot be read as an image"):
        ink(bomb)


def test_options_are_checked() -> None:
    assert OPTIONS.level
    for change in ({"margin": 0.5}, {"binarize": 2.0}, {"binarize": -0.1}):
        with pytest.raises(InputError, match=r"must be a number from 0\.0"):
            FolderOptions(**change)
