"""Figures of arrays alone: no model, no dataset; and images that travel inside text."""

import base64
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from vma.plotting.embedding import data_uri, pack, unpack
from vma.plotting.explained import Explained, explained_png
from vma.plotting.grids import OneShot, SampleRows, as_paper, one_shot_png, samples_png
from vma.plotting.imagined import NamedItems, best_blocks, imagined_png, rows_of
from vma.plotting.lookups import Lookup, Lookups, lookups_png, outcome

SIZE = (9, 8)


def ink(*counts: int, size: tuple[int, ...] = SIZE) -> np.ndarray:
    return np.random.default_rng(0).random((*counts, *size))


def named(count: int) -> NamedItems:
    names = [f"(item {i})" if i % 2 else "even" for i in range(count)]
    return NamedItems(ink(count), names, [i % 2 == 0 for i in range(count)])


def explained(count: int) -> Explained:
    q = np.arange(count, dtype=float)
    most = range(count)[:-6:-1]
    return Explained(ink(), ink(), "even", 0.6, q / q.sum(), list(most), log_p=-12.3, kl_a=1.0, kl_z=2.0)


def looked_up(kept: np.ndarray) -> Lookup:
    q = np.where(kept, 0.25, 0.0)
    return Lookup("the only one", ink(), 1, q, -12.3, kept)


def width_of(png: bytes) -> int:
    with Image.open(io.BytesIO(png)) as picture:
        assert np.asarray(picture.convert("L")).std() > 5
        return picture.width


def test_rows_of_cards_are_as_wide_as_a_page() -> None:
    rows = SampleRows(ink(3, 4), ink(3, 1))
    for picture in (one_shot_png(OneShot(ink(3, 1), ink(3, 4), ink(3, 2))), samples_png(rows)):
        assert width_of(picture) == 1536
    assert samples_png(replace(rows, items=None)) != samples_png(rows)


def test_ink_becomes_light_and_colours_come_last() -> None:
    assert as_paper(np.ones(SIZE)).tolist() == np.zeros(SIZE).tolist()
    assert as_paper(ink(3)).shape == (*SIZE, 3)
    assert width_of(samples_png(SampleRows(ink(2, 2, 3)))) == 1536


def test_lookups_say_which_share_is_on_the_own_class_unless_it_was_taken_out() -> None:
    labels = np.array([0, 0, 1, 1])
    whole, without = looked_up(np.ones(4, dtype=bool)), looked_up(labels == 0)
    assert outcome(whole, labels == 1) == "own class 50 %    log p(x|M) ≈ −12.3"
    assert outcome(without, labels == 1) == "log p(x|M) ≈ −12.3"
    assert width_of(lookups_png(Lookups(ink(4), labels, [whole, without]))) == 1536


def test_the_layout_of_what_was_imagined() -> None:
    rows = rows_of([5, 2, 5] + [2] * 9, list(np.zeros((12, *SIZE))))
    assert [(row.item, row.first, len(row.samples)) for row in rows] == [
        (2, True, 8),
        (2, False, 2),
        (5, True, 2),
    ]
    assert best_blocks(1, 12.0) == 1
    assert best_blocks(60, 4.0) > 2
    assert width_of(imagined_png(named(6), [5, 2, 5], list(ink(3)))) > 300


@pytest.mark.parametrize("count", [5, 40, 41, 100])
def test_an_explanation_has_room_for_few_and_for_many_items(count: int) -> None:
    assert width_of(explained_png(named(count), explained(count))) == 1536


def test_images_travel_inside_json_with_256_levels() -> None:
    images = np.random.default_rng(1).integers(0, 256, (2, 3, *SIZE)) / 255
    again = unpack(json.loads(json.dumps(pack(images))))
    assert (again == images.astype(np.float32)).all()
    assert unpack(pack(np.array([-1.0, 2.0]))).tolist() == [0.0, 1.0]


def test_a_picture_travels_inside_its_address() -> None:
    head, _, body = data_uri(b"\x89PNG").partition(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(body) == b"\x89PNG"
