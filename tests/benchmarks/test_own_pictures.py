"""The measurement of pictures of one's own, on a few sketches instead of fonts."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from benchmarks import own_pictures
from benchmarks.font_scripts import photographed
from benchmarks.own_pictures import Options, main, nearest, table
from tests.helpers.pages import sketch


def test_the_nearest_is_the_one_with_the_largest_cosine() -> None:
    score = nearest(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_allclose(score(np.array([0, 1]), 2), [0.6, 0.8])


def test_all_methods_are_asked_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five sketches in three pens: whoever looks at them at all knows which is which."""
    torch.set_default_dtype(torch.float32)
    monkeypatch.setattr(own_pictures, "TASKS", ((5, 1),))
    for letter in range(5):
        for number, pen in enumerate((3, 6, 9)):
            page = Image.fromarray(sketch(letter, pen))
            for kind, picture in (("clean", page), ("photo", photographed(page, number))):
                path = tmp_path / kind / f"Lao-{letter:04X}" / f"{number:02d}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                picture.save(path)
    threads, out = torch.get_num_threads(), tmp_path / "found.json"
    main(Options(tmp_path, out, models=("omniglot",), trials=10, novelty=0))
    torch.set_num_threads(threads)
    found = json.loads(out.read_text())
    assert set(found["kinds"]) == {"clean", "photo"}
    for kind in found["kinds"].values():
        assert (kind["classes"], kind["pictures"], kind["doubtful"]) == (5, 15, 0)
        for name in ("omniglot", "blurred nearest neighbour", "HOG nearest neighbour"):
            assert kind["right"][name][0]["value"] >= 0.8
    assert table(found).count("\n") == 1 + 2 * 5
