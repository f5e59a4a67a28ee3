"""Training learns what it should, on a problem of a few seconds."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.small_runs import fit, losses, small
from vma import InputError
from vma.runs.settings import EpisodeSettings, OptimiserSettings, TrainSettings
from vma.storage import load_model


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


def learned(updates: int, **changes: object) -> TrainSettings:
    model = replace(small().model, learned_items=6, item_size=5)
    return small(
        model=model, episode=EpisodeSettings("batch", targets=8), optimiser=OptimiserSettings(average=0.5),
        updates=updates, **changes,
    )  # fmt: skip


def moved(settings: TrainSettings, folder: Path) -> set[str]:
    """The parts of the model that have other weights than after the first update."""
    first, last = (
        load_model(fit(replace(settings, updates=n), folder / str(n)).model_file).state_dict()
        for n in (1, settings.updates)
    )
    return {name.split(".")[0] for name in first if not first[name].equal(last[name])}


def test_addresses_learn_after_the_rest_if_they_are_told_to(tmp_path: Path) -> None:
    assert moved(learned(4, address_after=4), tmp_path / "held") == {"learned_memory", "networks"}
    free = moved(learned(5, address_after=4), tmp_path / "free")
    assert free == {"addressing", "learned_memory", "networks"}


def test_what_waits_goes_on_the_same(tmp_path: Path) -> None:
    settings = learned(10, address_after=6)
    whole = fit(settings, tmp_path / "whole")
    fit(replace(settings, updates=4), tmp_path / "parts")
    assert losses(fit(settings, tmp_path / "parts", resume=True)) == losses(whole)


def test_only_addresses_can_wait() -> None:
    with pytest.raises(InputError, match="'vae' has no address: leave address_after out"):
        small(model=replace(small().model, model="vae"), address_after=3)
    with pytest.raises(InputError, match="address_after must be a whole number from 0"):
        small(address_after=-1)
