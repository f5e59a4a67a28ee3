"""The page's tables are those of the JSON behind them."""

import json
from pathlib import Path

import pytest

from benchmarks.performance_page import PAGE, RESULTS, SECTIONS, filled, tables

ABOUT = {
    "machine": {"processor": "P", "cores": 2, "threads": 1, "instructions": "AVX2", "torch": "2"},
    "settings": {
        "clock": "wall", "repeats": 3, "maps": 64, "memory": 32, "targets": 32, "samples": 4, "preset": "x",
    },
}  # fmt: skip
STEP = {
    "sgemm_flops_per_second": 1e11,
    "seconds": {"vma": 0.5, "textbook": 1.1, "textbook, channels_last": 1.0, "memory per target": 3.0},
    "speedup_vs_textbook": 2.25, "speedup_vs_textbook_channels_last": 2.0, "speedup_vs_per_target_memory": 6.0,
    "flops": {"vma": 3e10, "textbook": 6e10, "textbook, channels_last": 6e10, "memory per target": 1.6e11},
    "fraction_of_sgemm": 0.61, "unique_pairs": 54, "unique_items": 25, "reads": 128,
}  # fmt: skip
ADDRESSING = {
    "rows": [{"memory": 1_000_000, "targets": 1, "seconds_per_query": 0.05, "limit_seconds": 0.03,
              "fraction_of_bandwidth": 0.6, "bytes_per_query": 2.4e7}],
    "growth_exponent": {"1": 0.98}, "bytes_per_second": 1.8e10,
}  # fmt: skip


def test_the_page_shows_the_measured_numbers() -> None:
    page = PAGE.read_text()
    assert page == filled(page, RESULTS)


def test_tables_are_made_of_what_there_is(tmp_path: Path) -> None:
    for name, found in (("bench-step-64", STEP), ("bench-addressing", ADDRESSING)):
        (tmp_path / f"{name}.json").write_text(json.dumps({**ABOUT, **found}))
    text = tables(tmp_path)
    assert "| textbook | 1.1 s | 2.25 × | 60.0 | 0.55 |" in text
    assert "2.00 updates per second, **0.61**" in text
    assert "| 1 000 000 | 1 | 50 ms | 30 ms | 0.60 | 24 MB |" in text
    assert text.count("has not been measured yet") == len(SECTIONS) - 2


@pytest.mark.parametrize("word", ["step", "evaluate", "attention", "addressing", "data"])
def test_the_page_names_every_command(word: str) -> None:
    assert f"python -m benchmarks.speed {word}" in PAGE.read_text()
