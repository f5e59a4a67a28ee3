"""Training on one memory of many classes that is searched by old keys: what is learned, and that it is unbiased."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers.oracles import bits, expected_gradient, small_mlp, tuples
from tests.helpers.small_runs import SMALL, fit, losses, small
from vma import build_vma, multi_sample_bound
from vma.data import load_dataset
from vma.errors import InputError, TooFewImages
from vma.estimators import estimate, find_estimator
from vma.proposals import SearchedMemory
from vma.reads import Reads
from vma.runs.folder import Run
from vma.runs.settings import SearchSettings, SleepSettings
from vma.training.episodes import open_episodes
from vma.training.standing import StandingMemory, split

SEARCHING = small(
    search=SearchSettings(candidates=5, classes=40, refresh=4),
    updates=10,
    checkpoint_every=3,
    optimiser=replace(SMALL.optimiser, schedule="constant"),
)


def test_the_gradient_is_that_of_the_bound_by_enumeration_of_all_pairs_with_keys_of_old() -> None:
    """Σ over all |M|² pairs of r(a₁) r(a₂) ∇ surrogate = ∇ E[L], also for e^p; float64."""
    model = build_vma(small_mlp())
    torch.nn.init.normal_(model.addressing.prior_query)
    standing = StandingMemory(bits(7, 4, 4), model.config.matching, 3, 100, 0.2)
    standing.refreshed(0, model.addressing)
    with torch.no_grad():
        for parameter in model.addressing.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    x, noise, parameters = bits(1, 4, 4), torch.randn(1, 2, 2), [*model.parameters()]

    def terms_of(a: tuple[int, ...]):
        memory = standing.now(model.addressing)
        proposal = model.proposal(x, memory)
        reads = Reads(torch.tensor([a]), torch.full((1, 2), -math.log(2)))
        return model.terms_at(x, memory, proposal.p_a, proposal, reads, noise)

    memory = standing.now(model.addressing)
    assert isinstance(memory, SearchedMemory)
    log_r = model.proposal(x, memory).log_prob(torch.arange(7)[None])[0]
    assert float(log_r.detach().exp().sum()) == pytest.approx(1, abs=1e-9)
    vimco = find_estimator("vimco")
    found = expected_gradient(
        tuples(log_r.detach(), 2),
        lambda a: estimate(terms_of(a), vimco, "pathwise").surrogate.sum(),
        parameters,
    )
    expected = torch.stack([p * multi_sample_bound(terms_of(a))[0] for a, p in tuples(log_r, 2)]).sum()
    gradients = torch.autograd.grad(expected, parameters)
    torch.testing.assert_close(found, torch.cat([g.flatten() for g in gradients]), rtol=1e-8, atol=1e-10)
    (of_e_p,) = (g for g, p in zip(gradients, parameters, strict=True) if p is model.addressing.prior_query)
    assert float(of_e_p.abs().max()) > 1e-4


def test_targets_are_other_images_of_the_classes_in_memory() -> None:
    dataset = load_dataset("glyphs", "train", size=16)
    memory, targets = split(SEARCHING, dataset)
    assert sorted(np.bincount(memory.labels)[np.unique(memory.labels)].tolist()) == [2] * 40
    assert set(targets.labels.tolist()) == set(memory.labels.tolist())
    both = np.concatenate((memory.images, targets.images)).reshape(-1, 256)
    assert len(np.unique(both, axis=0)) > 0.98 * len(both)
    with pytest.raises(TooFewImages, match=r"choose a lower search\.classes or episode\.shots"):
        split(replace(SEARCHING, search=SearchSettings(candidates=5, classes=10**6)), dataset)


def test_a_run_with_old_keys_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    whole = fit(SEARCHING, tmp_path / "whole")
    fit(replace(SEARCHING, updates=6), tmp_path / "cut")
    cut = Run(tmp_path / "cut")
    cut.keep_settings(SEARCHING)
    fit(SEARCHING, tmp_path / "cut", resume=True)  # between two refreshes, of updates 4 and 8
    assert losses(whole) == losses(cut)
    assert math.isfinite(losses(whole)[-1]["nll"])
    episodes = open_episodes(SEARCHING, None)
    assert episodes.standing is not None
    assert len(episodes.standing) == 80
    assert len(episodes.train.episode(0).tensors().targets) == 8


def test_what_cannot_be_searched_is_refused() -> None:
    with pytest.raises(InputError, match="'exact' goes through all of memory"):
        replace(SEARCHING, estimator="exact")
    with pytest.raises(InputError, match="Only a vma model with few-shot episodes"):
        replace(SEARCHING, episode=replace(SEARCHING.episode, kind="recall"))
    with pytest.raises(InputError, match=r"leave sleep\.beside out"):
        replace(SEARCHING, sleep=SleepSettings(beside=0.1))
