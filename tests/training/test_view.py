"""What is seen of a run."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live

from tests.helpers.small_runs import small
from vma.runs.folder import Run
from vma.training.view import LiveView, PlainView, clock, make_view, seconds_left, share_done

ROW = {
    "update": 15, "nll": 123.456, "reconstruction": -100.0, "kl_a": 1.5, "kl_z": 2.5, "entropy_q_a": 0.1,
    "entropy_p_a": 2.0, "effective_samples": 2.2, "gradient_norm": 33.0, "valid_nll": 130.0, "seconds": 3.0,
    "updates_per_second": 5.0,
}  # fmt: skip


def test_time_left_is_by_updates_or_by_minutes() -> None:
    assert seconds_left(small(), ROW) == 3.0  # 15 more updates at 5 a second
    assert seconds_left(small(updates=10**6, minutes=0.1), ROW) == pytest.approx(3.0)
    assert seconds_left(small(), {**ROW, "updates_per_second": 0.0}) == float("inf")
    assert share_done(small(), ROW) == 0.5
    assert share_done(small(updates=10**6, minutes=0.1), ROW) == pytest.approx(0.5)
    later = small(updates=10**6, minutes=0.01, least_updates=10**4)
    assert seconds_left(later, ROW) == pytest.approx((10**4 - ROW["update"]) / ROW["updates_per_second"])
    assert share_done(later, ROW) == pytest.approx(ROW["update"] / 10**4)
    assert [clock(s) for s in (5.0, 65.0, 3725.0, float("inf"))] == ["0:05", "1:05", "1:02:05", "?"]


def test_plain_lines_in_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    view = PlainView(small(), Run(tmp_path))
    view.show(ROW)
    view.ended(30, interrupted=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "update 15  nll 123.46  valid 130.00  kl_a 1.50  kl_z 2.50  5.0 updates/s  left 0:03"
    assert lines[2] == f"Stopped at update 30, saved. Go on with: vma train --resume {tmp_path}"


def test_a_live_table_in_a_terminal(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with Live(console=console) as live:
        view = LiveView(small(), Run(tmp_path), live)
        view.show(ROW)
        view.ended(30, interrupted=False)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    for part in ("123.46", "KL_a", "NLL, held-out classes", "update 15", "left 0:03", "Done: 30 updates"):
        assert part in shown


def test_quiet_shows_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with make_view(small(), Run(tmp_path), quiet=True) as view:
        view.show(ROW)
        view.ended(30, interrupted=False)
    assert capsys.readouterr().out == ""
