"""Updates of several episodes: the mean of their gradients and metrics, and runs that resume as before."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.helpers.small_runs import SMALL, fit, losses, small
from vma import InputError
from vma.runs.folder import Run
from vma.runs.processes import Processes
from vma.runs.settings import EpisodeSettings
from vma.training.episodes import open_episodes
from vma.training.loop import Trainer
from vma.training.phases import Awake
from vma.training.view import SilentView


def trainer(episodes: int) -> Trainer:
    settings = small(episode=replace(SMALL.episode, episodes=episodes))
    here = Processes(0, 1, torch.device("cpu"))
    return Trainer(settings, Run(Path("unused")), open_episodes(settings, None), here, SilentView())


def awake(episodes: int) -> Awake:
    phase = trainer(episodes).phase
    assert isinstance(phase, Awake)
    return phase


def gradient(one: Awake, numbers: range) -> torch.Tensor:
    one.model.zero_grad()
    for number in numbers:
        one.episode(number, 0.0)
    return torch.cat([p.grad.flatten() for p in one.model.parameters() if p.grad is not None])


def test_the_gradient_is_the_mean_over_episodes() -> None:
    one, three = awake(1), awake(3)
    alone = torch.stack([gradient(one, range(number, number + 1)) for number in range(3)])
    assert not alone[0].allclose(alone[1])
    torch.testing.assert_close(gradient(three, three.numbers(0)), alone.mean(0), rtol=1e-9, atol=1e-12)


def test_every_episode_is_seen_once() -> None:
    one = awake(3)
    assert list(one.numbers(0)) == [0, 1, 2]
    assert list(one.numbers(5)) == [15, 16, 17]


def test_metrics_are_means_over_episodes() -> None:
    one, two = awake(1), awake(2)
    expected = [one.episode(number, 0.0) for number in range(2)]
    two.step(0, 0, 0.0)
    row = two.window.row(1)
    assert row["nll"] == pytest.approx(float(expected[0][0] + expected[1][0]) / 2, rel=1e-12)
    assert row["gradient_norm"] > 0.0


def test_a_run_of_several_episodes_resumes_bit_for_bit(tmp_path: Path) -> None:
    steady = replace(SMALL.optimiser, schedule="constant")
    settings = small(episode=replace(SMALL.episode, episodes=2), optimiser=steady, updates=10)
    whole = fit(settings, tmp_path / "whole")
    fit(replace(settings, updates=6), tmp_path / "cut")
    resumed = fit(settings, tmp_path / "cut", resume=True)
    assert losses(resumed) == losses(whole)


def test_no_episode_at_all_is_refused() -> None:
    with pytest.raises(InputError, match=r"episode\.episodes"):
        EpisodeSettings(episodes=0)
