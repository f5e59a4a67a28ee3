"""The numbers of the report against other computations of them."""

import math
from dataclasses import asdict

import msgspec
import numpy as np
import pytest
import torch
from torch import Tensor, nn

import vma
from tests.quickstart.made import CONFIG, SIDE, TRAINING, dataset
from vma.addressing import AddressDistribution, class_mass
from vma.baselines import VAE
from vma.bounds import BoundTerms
from vma.data.samplers import EpisodeSampler
from vma.errors import InputError
from vma.evaluation.statistics import Mean, mean, wilson
from vma.memory import Memory
from vma.quickstart.measure import Findings, measure, recognition


def class_code(images: Tensor) -> Tensor:
    return images[:, 0].round() @ (2.0 ** torch.arange(SIDE, dtype=images.dtype))


class Recogniser:
    """q(a|x) ∝ exp(sharpness · [m_a is of the class of x]): 1000 is perfect, 0 is uniform, −1000 always wrong."""

    def __init__(self, sharpness: float) -> None:
        self.sharpness = sharpness

    def posterior(self, x: Tensor, memory: Memory | None = None) -> AddressDistribution:
        assert memory is not None
        same = class_code(x)[:, None] == class_code(memory.items)[None]
        return AddressDistribution.of_scores(self.sharpness * same.to(x.dtype))


class KnownTerms(nn.Module):
    """log w_k = −(k + 1) · ink of the target, with k = 0 … K − 1, all of it in log p(x|m,z)."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def terms(
        self,
        x: Tensor,
        memory: Memory | None = None,
        samples: int = 4,
        *,
        generator: torch.Generator | None = None,
    ) -> BoundTerms:
        ink = x.double().sum((1, 2))
        log_p_x = -ink[:, None] * torch.arange(1, samples + 1)
        none = torch.zeros_like(log_p_x)
        return BoundTerms(
            none, none, none + 0.25, none + 0.25, log_p_x, none - math.log(samples), kl_z=none + 2.0
        )


class KnownModel(KnownTerms):
    def posterior(self, x: Tensor, memory: Memory | None = None) -> AddressDistribution:
        return Recogniser(1000.0).posterior(x, memory)


def without_weights(model: nn.Module, bias: float) -> None:
    """Make every weight 0 and every output logit `bias`, so that nothing depends on a or z."""
    for name, parameter in model.named_parameters():
        output = "decode" in name and parameter.shape == (SIDE * SIDE,)
        nn.init.constant_(parameter, bias if output else 0.0)


def test_nll_of_a_model_that_ignores_a_and_z_is_the_cross_entropy() -> None:
    model, vae, data, bias = vma.build_vma(CONFIG), VAE(CONFIG), dataset(), -1.3
    without_weights(model, bias)
    without_weights(vae, 0.0)
    found = measure(model, vae, data, TRAINING, episodes=3, samples=5, trials=10, seed=4)
    sampler = EpisodeSampler(data, seed=4)
    ink = np.array([sampler.episode(step).targets.sum((1, 2)).mean() / 255 for step in range(3)])
    expected = SIDE * SIDE * math.log1p(math.exp(bias)) - bias * ink
    assert found.nll_vma.value == pytest.approx(expected.mean(), rel=1e-12)
    assert found.nll_vma.error == pytest.approx(expected.std(ddof=1) / math.sqrt(3), rel=1e-9)
    assert found.nll_vae.value == pytest.approx(SIDE * SIDE * math.log(2), rel=1e-12)
    assert found.gain.value == pytest.approx(found.nll_vae.value - found.nll_vma.value, rel=1e-9)
    assert found.reconstruction.value == pytest.approx(-expected.mean(), rel=1e-12)
    assert found.kl_a.value == pytest.approx(0, abs=1e-12)
    assert found.kl_z.value == pytest.approx(0, abs=1e-12)


def test_nll_is_the_log_mean_of_the_weights_over_targets_and_then_episodes() -> None:
    data, samples = dataset(), 3
    found = measure(KnownModel(), KnownTerms(), data, TRAINING, episodes=2, samples=samples, trials=10)
    sampler = EpisodeSampler(data)
    ink = np.stack([sampler.episode(step).targets.sum((1, 2)) / 255 for step in range(2)])
    bound = np.log(np.mean([np.exp(-k * ink) for k in (1, 2, 3)], axis=0))
    per_episode = -bound.mean(1)
    assert found.nll_vma.value == pytest.approx(per_episode.mean(), rel=1e-10)
    assert found.nll_vma.error == pytest.approx(abs(per_episode[0] - per_episode[1]) / 2, rel=1e-8)
    assert found.reconstruction.value == pytest.approx(-2 * ink.mean(), rel=1e-10)
    assert found.kl_z == Mean(2.0, 0.0)
    assert found.gain == Mean(0.0, 0.0)
    assert (found.targets, found.memory, found.accuracy.value) == (64, 32, 1.0)


def test_findings_repeat_from_the_seed_and_survive_json() -> None:
    model, vae, data = vma.build_vma(CONFIG), VAE(CONFIG), dataset()
    first, second, other = (
        measure(model, vae, data, TRAINING, episodes=2, samples=2, trials=20, seed=seed) for seed in (1, 1, 2)
    )
    assert first == second != other
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(asdict(first))), Findings) == first
    assert first.log_memory == math.log(first.memory)


def test_one_episode_has_no_standard_error() -> None:
    with pytest.raises(InputError, match="at least 2 episodes"):
        measure(vma.build_vma(CONFIG), VAE(CONFIG), dataset(), TRAINING, episodes=1)


@pytest.mark.parametrize(("sharpness", "expected"), [(1000.0, 1.0), (0.0, 0.2), (-1000.0, 0.0)])
def test_accuracy_of_a_perfect_an_undecided_and_a_wrong_posterior(sharpness: float, expected: float) -> None:
    share = recognition(Recogniser(sharpness), dataset(), trials=100)
    assert share.value == pytest.approx(expected)
    assert share.low <= expected <= share.high
    assert share.trials == 100


def test_accuracy_sums_over_the_shots_of_a_class() -> None:
    q = torch.tensor([[0.4, 0.3, 0.3, 0.0]])
    assert class_mass(q, torch.tensor([0, 1, 1, 2]), 3).tolist() == [pytest.approx([0.4, 0.6, 0.0])]


def test_wilson_interval_against_published_values() -> None:
    share = wilson(8, 10)
    assert (share.low, share.high) == (pytest.approx(0.4901, abs=2e-4), pytest.approx(0.9433, abs=2e-4))
    assert wilson(0, 10).low == 0.0 < wilson(0, 10).high == pytest.approx(0.2775, abs=2e-4)
    assert wilson(10, 10).high == 1.0 > wilson(10, 10).low


def test_mean_has_the_standard_error_of_the_mean() -> None:
    found = mean(torch.tensor([1.0, 2.0, 3.0, 6.0]))
    assert (found.value, found.error) == (3.0, pytest.approx(math.sqrt(14 / 3) / 2))
