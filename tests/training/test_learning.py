"""Training learns what it should, on a problem of a few seconds."""

import math
from dataclasses import replace
from pathlib import Path

from tests.training.small import fit, small
from vma.training.settings import EpisodeSettings, OptimiserSettings


def test_recall_learns_where_to_look(tmp_path: Path) -> None:
    """Targets out of a memory of eight glyphs: KL_a rises towards log 8, and the NLL falls by a third."""
    settings = small(
        model=replace(small().model, hidden=(64, 32), matching=16),
        episode=EpisodeSettings("recall", targets=16, shots=8),
        optimiser=OptimiserSettings(name="muon", rate=3e-3, muon_rate=0.03, warmup=20, schedule="cosine"),
        updates=800,
        log_every=40,
        validate_every=800,
        checkpoint_every=1000,
    )
    rows = fit(settings, tmp_path / "run").metrics()
    assert rows[-1]["kl_a"] > 0.6 * math.log(8)
    assert rows[-1]["valid_nll"] < 0.7 * rows[0]["nll"]
    assert rows[-1]["entropy_q_a"] < 0.5 * math.log(8)
