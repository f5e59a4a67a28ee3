"""A user's own images."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.helpers.data_files import png_bytes
from vma.data import FolderOptions, load_dataset
from vma.errors import InputError

SHAPE = np.zeros((56, 56), np.uint8)  # an L of ink
SHAPE[8:48, 8:16] = 255
SHAPE[40:48, 8:40] = 255
SMALL = SHAPE.reshape(28, 2, 28, 2).max(axis=(1, 3))
PLAIN = FolderOptions(level=False, uneven=False, crop=False, thin=False, binarize=0.5)  # only fitted


def put(folder: Path, name: str, image: Image.Image | np.ndarray) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png_bytes(image))


def in_mode(mode: str) -> Image.Image:
    """The L, dark on light, in any mode."""
    grey = Image.fromarray(255 - SHAPE)
    if mode == "RGBA":  # ink on transparent black
        return Image.fromarray(np.dstack([np.zeros_like(SHAPE)] * 3 + [SHAPE]))
    if mode == "I;16":
        return Image.fromarray((255 - SHAPE).astype(np.uint16) * 257)
    if mode == "LA":
        return Image.merge("LA", (grey, Image.new("L", grey.size, 255)))
    return grey.convert(mode)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_any_mode(tmp_path: Path, mode: str) -> None:
    put(tmp_path, "ell/a.png", in_mode(mode))
    data = load_dataset("folder", "all", data=tmp_path, folder=PLAIN)
    assert data.classes == ("ell",)
    np.testing.assert_array_equal(data.images[0], SMALL)


def test_classes_and_order(tmp_path: Path) -> None:
    for name in ("b/2.png", "b/1.PNG", "a/1.png", "c/x.png", ".hidden/1.png", "a/.hidden.png"):
        put(tmp_path, name, SHAPE)
    (tmp_path / "a" / "notes.txt").write_text("not an image")
    data = load_dataset("folder", "all", data=tmp_path)
    assert data.classes == ("a", "b", "c")
    assert data.class_labels().tolist() == [0, 1, 1, 2]


def test_polarity(tmp_path: Path) -> None:
    put(tmp_path, "light/a.png", SHAPE)
    for invert, expected in (("auto", SMALL), ("no", SMALL), ("yes", 255 - SMALL)):
        data = load_dataset("folder", "all", data=tmp_path, folder=replace(PLAIN, invert=invert))
        np.testing.assert_array_equal(data.images[0], expected)


def test_wide_image_is_not_distorted(tmp_path: Path) -> None:
    wide = np.zeros((20, 80), np.uint8)
    wide[:, 30:50] = 255
    put(tmp_path, "wide/a.png", wide)
    image = load_dataset("folder", "all", data=tmp_path, size=40, folder=replace(PLAIN, invert="no")).images[
        0
    ]
    rows, columns = np.flatnonzero(image.any(1)), np.flatnonzero(image.any(0))
    assert (rows[0], rows[-1], columns[0], columns[-1]) == (15, 24, 15, 24)


def test_crop_with_margin(tmp_path: Path) -> None:
    page = np.zeros((200, 300), np.uint8)
    page[20:52, 200:232] = 255
    put(tmp_path, "dot/a.png", page)
    options = replace(PLAIN, crop=True, margin=0.1)
    image = load_dataset("folder", "all", data=tmp_path, size=20, folder=options).images[0]
    assert (image[2:18, 2:18] == 255).all()
    assert image.sum() == 255 * 16 * 16


def test_grey_is_kept_on_request(tmp_path: Path) -> None:
    put(tmp_path, "a/a.png", SHAPE // 2)
    grey = load_dataset("folder", "all", data=tmp_path, folder=replace(PLAIN, binarize=None)).images[0]
    assert set(np.unique(grey)) == {0, 127}
    dim = load_dataset("folder", "all", data=tmp_path, folder=replace(PLAIN, binarize=0.6)).images[0]
    assert not dim.any()


def test_parts_are_disjoint_classes(tmp_path: Path) -> None:
    for c in range(10):
        put(tmp_path, f"class{c}/a.png", SHAPE)
    train = load_dataset("folder", "train", data=tmp_path)
    test = load_dataset("folder", "test", data=tmp_path)
    assert len(test.classes) == 2
    assert set(train.classes) | set(test.classes) == {f"class{c}" for c in range(10)}
    assert (train.split, test.split) == ("train", "test")
    with pytest.raises(InputError, match="leaves no train"):
        load_dataset("folder", "train", data=tmp_path, folder=FolderOptions(held_out=1.0))


def test_unreadable_images_are_counted_and_named(tmp_path: Path) -> None:
    put(tmp_path, "a/good.png", SHAPE)
    (tmp_path / "a" / "text.png").write_text("not a picture")
    (tmp_path / "a" / "cut.png").write_bytes(
        png_bytes(np.random.default_rng(0).integers(0, 255, (50, 50), np.uint8))[:900]
    )
    with pytest.raises(InputError, match=r"2 of 3 images .* a/cut\.png, a/text\.png\. Remove them, or"):
        load_dataset("folder", "all", data=tmp_path)
    with pytest.warns(UserWarning, match="2 of 3 images"):
        data = load_dataset("folder", "all", data=tmp_path, folder=FolderOptions(skip_unreadable=True))
    assert len(data) == 1


def test_enormous_image_counts_as_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "a/huge.png", SHAPE)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2000)
    with pytest.raises(InputError, match=r"a/huge\.png"):
        load_dataset("folder", "all", data=tmp_path)


def test_no_folder_or_no_images(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs --data"):
        load_dataset("folder", "all")
    with pytest.raises(InputError, match="needs --data"):
        load_dataset("folder", "all", data=tmp_path / "nowhere")
    put(tmp_path, "loose.png", SHAPE)
    with pytest.raises(InputError, match=r"no images as class/name\.png"):
        load_dataset("folder", "all", data=tmp_path)
    with pytest.raises(InputError, match="Size 0"):
        load_dataset("folder", "all", data=tmp_path, size=0)


def test_colours_are_kept_where_they_are_asked_for(tmp_path: Path) -> None:
    """255 − red, green and blue, so that white paper is empty; what is transparent or beside is paper."""
    picture = np.full((28, 14, 4), 255, np.uint8)
    picture[:14, :, :3] = (255, 0, 51)
    picture[14:, :, 3] = 0
    put(tmp_path, "flag/a.png", Image.fromarray(picture))
    options = FolderOptions(colour=True)
    data = load_dataset("folder", "all", data=tmp_path, folder=options)
    assert data.images.shape == (1, 3, 28, 28)
    assert data.channels == 3
    assert data.size == (28, 28)
    assert data.images[0, :, 3, 14].tolist() == [0, 255, 204]
    assert not data.images[0, :, 14:].any()
    assert not data.images[0, :, :, :7].any()
    assert not data.images[0, :, :, 21:].any()


def test_doubtful_pictures_are_named_in_one_warning(tmp_path: Path) -> None:
    blocks = np.random.default_rng(0).integers(0, 255, (12, 12), np.uint8).repeat(20, 0).repeat(20, 1)
    for name in ("a", "b"):
        put(tmp_path, f"odd/{name}.png", blocks)
    put(tmp_path, "fine/a.png", SHAPE)
    with pytest.warns(UserWarning, match=r"^2 of 3 pictures .* odd/a\.png \(.*, odd/b\.png \(") as caught:
        load_dataset("folder", "all", data=tmp_path)
    assert len(caught) == 1
