"""The study of typical drawings: it runs on other characters, and the note states what it found."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from benchmarks import typical_drawings
from benchmarks.typical_drawings import Options, compared, main
from vma.data import load_dataset

ROOT = Path(__file__).parents[2]


def test_shares_of_ink_are_counted() -> None:
    x, drawn = torch.zeros(4, 2, 5), torch.zeros(4, 2, 5)
    x[:, 0], drawn[1, 0, 0], drawn[2, 0], drawn[3, 1, :4] = 1, 1, 1, 1
    found = compared(drawn, x)
    assert (found["blank"]["value"], found["less than half"]["value"]) == (0.25, 0.5)
    assert found["share"] == pytest.approx(0.5)


def test_it_runs_on_other_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_default_dtype(torch.float32)
    glyphs = partial(load_dataset, "glyphs", "test")
    monkeypatch.setattr(typical_drawings, "load_dataset", lambda *name, data: glyphs())
    threads = torch.get_num_threads()
    main(Options(tmp_path / "found.json", images=12))
    torch.set_num_threads(threads)
    found = json.loads((tmp_path / "found.json").read_text())["drawn"]
    assert len(found) == 6
    for name, each in found.items():
        if "typical" in name:
            assert each["blank"]["value"] == 0


def test_the_note_states_what_was_found() -> None:
    note = (ROOT / "docs/lab-notes/ink-in-reading-order.md").read_text()
    found = json.loads((ROOT / "results/typical-drawings.json").read_text())["drawn"]
    for at in ("p(z|m)", "q(z|m,x)"):
        cells = [
            " %, ".join(
                f"{100 * found[f'{at}, {way}'][what]['value']:.1f}" for what in ("blank", "less than half")
            )
            for way in ("every pixel's more probable value", "at random", "typical")
        ]
        assert " | ".join(f"{cell} %" for cell in cells) in note
