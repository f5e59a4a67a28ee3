"""The numbers of the report against other computations of them."""

import math
from dataclasses import asdict
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from torch import Tensor, nn

import vma
from tests.quickstart.made import CONFIG, SIDE, TRAINING, dataset, trained
from vma.addressing import AddressDistribution
from vma.baselines import VAE
from vma.bounds import BoundTerms
from vma.build import parts_of
from vma.data.samplers import EpisodeSampler
from vma.evaluation.statistics import Mean
from vma.memory import Memory
from vma.quickstart.measure import TARGETS, Findings, measure


class KnownWeights:
    """log w_k = −(k + 1) · ink of the target, with k = 0 … K − 1, all of it in log p(x|m,z)."""

    def terms(self, x: Tensor, memory: Memory | None = None, samples: int = 4, **options: Any) -> BoundTerms:
        ink = x.double().sum((1, 2))
        log_p_x = -ink[:, None] * torch.arange(1, samples + 1)
        none = torch.zeros_like(log_p_x)
        return BoundTerms(
            none, none, none + 0.25, none + 0.25, log_p_x, none - math.log(samples), kl_z=none + 2.0
        )


class KnownModel(KnownWeights, vma.VMA):
    """Both numbers and addresses are known: it finds every class."""

    def __init__(self) -> None:
        super().__init__(*parts_of(CONFIG))

    def posterior(self, x: Tensor, memory: Memory | None = None) -> AddressDistribution:
        assert memory is not None
        same = class_code(x)[:, None] == class_code(memory.items)[None]
        return AddressDistribution.of_scores(1000.0 * same.to(x.dtype))


class KnownVAE(KnownWeights, VAE):
    """The same numbers without a memory."""


def class_code(images: Tensor) -> Tensor:
    return images[:, 0].round() @ (2.0 ** torch.arange(SIDE, dtype=images.dtype))


def grouped_error(values: np.ndarray, each: int) -> float:
    """The standard error of the mean where `each` values that follow each other are one group, all of one size."""
    means = values.reshape(-1, each).mean(1)
    return means.std(ddof=1) / math.sqrt(len(means))


def without_weights(model: nn.Module, bias: float) -> None:
    """Make every weight 0 and every output logit `bias`, so that nothing depends on a or z."""
    for name, parameter in model.named_parameters():
        output = "decode" in name and parameter.shape == (SIDE * SIDE,)
        nn.init.constant_(parameter, bias if output else 0.0)


def test_nll_of_a_model_that_ignores_a_and_z_is_the_cross_entropy() -> None:
    model, vae, bias = vma.build_vma(CONFIG), VAE(CONFIG), -1.3
    without_weights(model, bias)
    without_weights(vae, 0.0)
    found = measure(trained(model), trained(vae), TRAINING, episodes=3, samples=5, trials=10, seed=4)
    sampler = EpisodeSampler(dataset(), seed=4)
    ink = np.concatenate([sampler.episode(step).targets.sum((1, 2)) / 255 for step in range(3)])
    expected = SIDE * SIDE * math.log1p(math.exp(bias)) - bias * ink
    assert found.nll_vma.value == pytest.approx(expected.mean(), rel=1e-12)
    assert found.nll_vma.error == pytest.approx(grouped_error(expected, TARGETS), rel=1e-9)
    assert found.nll_vae.value == pytest.approx(SIDE * SIDE * math.log(2), rel=1e-12)
    assert found.gain.value == pytest.approx(found.nll_vae.value - found.nll_vma.value, rel=1e-9)
    assert found.reconstruction.value == pytest.approx(-expected.mean(), rel=1e-12)
    assert found.kl_a.value == pytest.approx(0, abs=1e-12)
    assert found.kl_z.value == pytest.approx(0, abs=1e-12)


def test_nll_is_the_log_mean_of_the_weights_over_targets() -> None:
    runs, samples = (trained(KnownModel()), trained(KnownVAE(CONFIG))), 3
    found = measure(*runs, TRAINING, episodes=2, samples=samples, trials=10)
    sampler = EpisodeSampler(dataset())
    ink = np.concatenate([sampler.episode(step).targets.sum((1, 2)) / 255 for step in range(2)])
    nll = -np.log(np.mean([np.exp(-k * ink) for k in (1, 2, 3)], axis=0))
    assert found.nll_vma.value == pytest.approx(nll.mean(), rel=1e-10)
    assert found.nll_vma.error == pytest.approx(grouped_error(nll, TARGETS), rel=1e-8)
    assert found.reconstruction.value == pytest.approx(-2 * ink.mean(), rel=1e-10)
    assert found.kl_z == Mean(2.0, 0.0)
    assert found.gain == Mean(0.0, 0.0)
    assert (found.targets, found.memory, found.accuracy.value) == (64, 32, 1.0)


def test_findings_repeat_from_the_seed_and_survive_json() -> None:
    runs = trained(vma.build_vma(CONFIG)), trained(VAE(CONFIG))
    first, second, other = (
        measure(*runs, TRAINING, episodes=2, samples=2, trials=20, seed=seed) for seed in (1, 1, 2)
    )
    assert first == second != other
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(asdict(first))), Findings) == first
    assert first.log_memory == math.log(first.memory)
