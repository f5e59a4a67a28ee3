"""Episodes: what they hold, that targets are not in memory, and that (seed, step) is all they depend on."""

import math
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
import torch

from tests.helpers.data_files import make_dataset
from vma.data import BatchSampler, Dataset, Episode, EpisodeSampler, RecallSampler, Sampler, binarize
from vma.data.randomness import permutation, stream
from vma.errors import InputError

SIGMAS = 5.0  # a right sampler fails one of the statistical tests below less than once in 10⁵ runs


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch off the checks of shapes, which take longer than the sampling; other tests have them."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def same(a: Episode, b: Episode) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(vars(a).values(), vars(b).values(), strict=True))


def check_labels(data: Dataset, episode: Episode) -> None:
    """Images, labels and indices tell the same story."""
    for images, labels, indices in (
        (episode.targets, episode.target_labels, episode.target_indices),
        (episode.memory, episode.memory_labels, episode.memory_indices),
    ):
        np.testing.assert_array_equal(images, data.images[indices])
        np.testing.assert_array_equal(episode.classes[labels], data.class_labels()[indices])


@pytest.mark.parametrize("sizes", [[8] * 12, [8, 30, 9, 500, 12, 10, 8, 64, 70, 8], [100] * 9])
def test_shape_of_an_episode(sizes: list[int]) -> None:
    data = make_dataset(sizes)
    for step in range(50):
        episode = EpisodeSampler(data, classes=8, targets=3, shots=5).episode(step)
        check_labels(data, episode)
        assert np.bincount(episode.target_labels).tolist() == [3] * 8
        assert np.bincount(episode.memory_labels).tolist() == [5] * 8
        assert len(set(episode.classes.tolist())) == 8
        used = np.concatenate([episode.target_indices, episode.memory_indices])
        assert len(set(used.tolist())) == len(used)


@pytest.mark.usefixtures("unchecked")
def test_no_overlap_in_a_hundred_thousand_episodes() -> None:
    """Classes with no image to spare, with a few and with very many: every way of drawing is tried."""
    for sizes, steps in (([5] * 4, 40_000), ([7, 5, 6, 8], 30_000), ([30, 25, 400, 26], 30_000)):
        data = make_dataset(sizes, side=1)
        sampler = EpisodeSampler(data, classes=2, targets=2, shots=3)
        for step in range(steps):
            episode = sampler.episode(step)
            used = episode.target_indices.tolist() + episode.memory_indices.tolist()
            assert len(set(used)) == 10


@pytest.mark.usefixtures("unchecked")
def test_every_image_is_as_likely() -> None:
    """Each image of a class of n is a target with probability C/classes · T/n, in either way of drawing."""
    for sizes in ([6, 9, 7], [40, 36, 50]):
        data = make_dataset(sizes, side=1)
        sampler = EpisodeSampler(data, classes=2, targets=2, shots=4)
        steps = 4000
        targets, items = np.zeros(len(data)), np.zeros(len(data))
        for step in range(steps):
            episode = sampler.episode(step)
            targets[episode.target_indices] += 1
            items[episode.memory_indices] += 1
        size = np.array(sizes)[data.class_labels()]
        for count, drawn in ((targets, 2), (items, 4)):
            p = 2 / 3 * drawn / size
            assert (abs(count - steps * p) < SIGMAS * np.sqrt(steps * p * (1 - p))).all()


def test_unequal_shots_and_distractors() -> None:
    data = make_dataset([9] * 6)
    sampler = EpisodeSampler(data, classes=3, targets=2, shots=[1, 0, 7, 9, 2], distractors=2)
    for step in range(20):
        episode = sampler.episode(step)
        check_labels(data, episode)
        assert np.bincount(episode.memory_labels, minlength=5).tolist() == [1, 0, 7, 9, 2]
        assert np.bincount(episode.target_labels, minlength=5).tolist() == [2, 2, 2, 0, 0]
        assert not set(episode.target_indices) & set(episode.memory_indices)


def test_whole_dataset_as_memory() -> None:
    data = make_dataset([20] * 144)
    for shots in (1, 19):
        episode = EpisodeSampler(data, classes="all", targets=1, shots=shots).episode(0)
        check_labels(data, episode)
        assert sorted(episode.classes.tolist()) == list(range(144))
        assert len(episode.memory) == 144 * shots
        assert len(episode.targets) == 144
        assert not set(episode.target_indices) & set(episode.memory_indices)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("classes", "expected"), [(1, 0.62), (2, 0.38), (4, 0.21)])
def test_with_replacement_as_in_gmn(classes: int, expected: float) -> None:
    """P(target in memory) = 1 − (1 − 1/(20·C))^19 for 19 images in total."""
    data = make_dataset([20] * 30, side=1)
    sampler = EpisodeSampler(
        data, classes=classes, targets=1, shots=19, protocol="with-replacement", counts="total", seed=5
    )
    steps = 3000
    hits = 0
    for step in range(steps):
        episode = sampler.episode(step)
        assert len(episode.memory) == 19
        hits += episode.target_indices[0] in episode.memory_indices
    p = 1 - (1 - 1 / (20 * classes)) ** 19
    assert p == pytest.approx(expected, abs=0.005)
    assert abs(hits / steps - p) < SIGMAS * math.sqrt(p * (1 - p) / steps)


def test_total_counts_are_shared_out_at_random() -> None:
    data = make_dataset([20] * 10, side=1)
    sampler = EpisodeSampler(data, classes=3, distractors=1, targets=2, shots=8, counts="total")
    counts = np.zeros(4)
    for step in range(1000):
        episode = sampler.episode(step)
        assert (len(episode.targets), len(episode.memory)) == (2, 8)
        assert episode.target_labels.max() < 3
        assert not set(episode.target_indices) & set(episode.memory_indices)
        counts += np.bincount(episode.memory_labels, minlength=4)
    assert (abs(counts - 2000) < SIGMAS * math.sqrt(8000 * 0.25 * 0.75)).all()


def samplers(data: Dataset, rank: int = 0, world: int = 1, seed: int = 0) -> list[Sampler]:
    return [
        EpisodeSampler(data, classes=3, targets=2, shots=2, seed=seed, rank=rank, world=world),
        RecallSampler(data, memory=8, targets=5, seed=seed, rank=rank, world=world),
        BatchSampler(data, batch=7, seed=seed, rank=rank, world=world, stochastic_binarization=True),
    ]


@pytest.mark.parametrize("kind", range(3))
def test_step_and_seed_decide(kind: int) -> None:
    data = make_dataset([9] * 6)
    first = samplers(data)[kind]
    forwards = [first.episode(step) for step in range(30)]
    again = samplers(data)[kind]
    assert all(same(forwards[step], again.episode(step)) for step in reversed(range(30)))
    assert not any(same(forwards[step], forwards[step + 1]) for step in range(29))
    other = samplers(data, seed=1)[kind]
    assert not any(same(forwards[step], other.episode(step)) for step in range(30))


@pytest.mark.parametrize("kind", range(3))
def test_ranks_share_out_the_episodes_of_one_process(kind: int) -> None:
    data = make_dataset([9] * 6)
    alone = samplers(data)[kind]
    ranks = [samplers(data, rank, world=3)[kind] for rank in range(3)]
    for step in range(10):
        for rank in range(3):
            assert same(ranks[rank].episode(step), alone.episode(3 * step + rank))


def test_known_episode() -> None:
    """The same numbers on every machine: they are written down here."""
    images, labels = np.zeros((54, 1, 1), np.uint8), np.arange(54) // 9
    data = Dataset("made", "train", images, labels, tuple("abcdef"), "")
    episode = EpisodeSampler(data, classes=2, targets=1, shots=2, seed=7).episode(11)
    found = [episode.classes.tolist(), episode.target_indices.tolist(), episode.memory_indices.tolist()]
    assert found == [[1, 0], [17, 4], [15, 13, 2, 5]]
    assert permutation(8, seed=3, index=2).tolist() == [1, 5, 4, 2, 6, 3, 0, 7]


def test_recall_targets_are_in_memory() -> None:
    data = make_dataset([20], side=5)
    sampler = RecallSampler(data, memory=16, targets=6, stochastic_binarization=True)
    seen = np.zeros(16)
    for step in range(400):
        episode = sampler.episode(step)
        assert len(set(episode.memory_indices.tolist())) == 16
        np.testing.assert_array_equal(episode.targets, episode.memory[episode.target_labels])
        np.testing.assert_array_equal(episode.target_indices, episode.memory_indices[episode.target_labels])
        assert set(np.unique(episode.memory)) == {0, 255}
        seen += np.bincount(episode.target_labels, minlength=16)
    assert (abs(seen - 150) < SIGMAS * math.sqrt(2400 / 16 * 15 / 16)).all()


@pytest.mark.parametrize("batch", [1, 7, 10, 25])
def test_each_epoch_is_a_permutation(batch: int) -> None:
    data = make_dataset([4, 6])
    sampler = BatchSampler(data, batch=batch, seed=2)
    steps = 5 * 10 // batch + 1
    order = np.concatenate([sampler.episode(step).target_indices for step in range(steps)])
    epochs = order[:50].reshape(5, 10)
    assert (np.sort(epochs, axis=1) == np.arange(10)).all()
    assert len({tuple(epoch) for epoch in epochs.tolist()}) == 5
    episode = sampler.episode(3)
    check_labels(data, episode)
    assert episode.memory.shape == (0, 2, 2)


def test_batches_of_data_without_labels() -> None:
    data = make_dataset([5])
    unlabelled = Dataset("bare", "train", data.images, None, (), "")
    assert BatchSampler(unlabelled, batch=3).episode(0).target_labels.tolist() == [-1, -1, -1]
    with pytest.raises(InputError, match=r"bare .* has no labels"):
        EpisodeSampler(unlabelled)


def test_tensors_are_float32_in_unit_interval() -> None:
    episode = EpisodeSampler(make_dataset([9] * 6), classes=2).episode(0)
    tensors = episode.tensors()
    assert tensors.targets.dtype == tensors.memory.dtype == torch.float32
    np.testing.assert_allclose(tensors.memory.numpy() * 255, episode.memory, rtol=1e-6)
    np.testing.assert_array_equal(tensors.target_labels.numpy(), episode.target_labels)
    assert episode.targets.max() > 1


def test_binarization_is_bernoulli_and_repeatable() -> None:
    images = np.tile(np.array([[0, 51, 128, 254, 255]], np.uint8), (20000, 1, 1))
    once = binarize(images, stream(1))
    np.testing.assert_array_equal(once, binarize(images, stream(1)))
    assert (once != binarize(images, stream(2))).any()
    assert set(np.unique(once)) == {0, 255}
    p = images[0, 0] / 255
    rate = once[:, 0].mean(axis=0) / 255
    assert (abs(rate - p) <= SIGMAS * np.sqrt(p * (1 - p) / 20000)).all()


def test_binarization_per_step_or_fixed() -> None:
    data = make_dataset([1], side=30)
    moving = BatchSampler(data, batch=1, stochastic_binarization=True)
    assert (moving.episode(0).targets != moving.episode(1).targets).any()
    fixed = data.binarized(seed=4)
    assert fixed.is_binary
    assert not data.is_binary
    np.testing.assert_array_equal(fixed.images, data.binarized(seed=4).images)
    still = BatchSampler(fixed, batch=1)
    np.testing.assert_array_equal(still.episode(0).targets, still.episode(1).targets)


def test_class_with_too_few_images_is_named() -> None:
    data = make_dataset([9, 5, 9, 7])
    with pytest.raises(
        InputError, match="Class 'class1' has 5 images, but 4 targets and 4 memory items need 8"
    ):
        EpisodeSampler(data, classes=2, targets=4, shots=4)
    EpisodeSampler(data, classes=2, targets=4, shots=4, protocol="with-replacement").episode(0)
    with pytest.raises(InputError, match="need 9"):
        EpisodeSampler(data, classes=1, targets=1, shots=[1, 9], distractors=1)
    EpisodeSampler(data, classes=1, targets=4, shots=[1, 5], distractors=1).episode(0)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"classes": 7}, "7 classes cannot be drawn .* which has 6"),
        ({"classes": 5, "distractors": 2}, "7 classes cannot be drawn"),
        ({"classes": 0}, "at least one class"),
        ({"targets": 0}, "at least one class and one target"),
        ({"shots": 0}, "leave the memory empty"),
        ({"shots": [1, -1]}, "negative"),
        ({"shots": [1, 2, 3]}, "3 numbers of shots were given for 2 classes"),
        ({"shots": [1, 2], "counts": "total"}, "must be one number"),
        ({"rank": 2, "world": 2}, "Rank 2 is not one of 2"),
        ({"seed": -1}, "Seed -1"),
    ],
)
def test_impossible_episodes(arguments: dict, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        EpisodeSampler(make_dataset([9] * 6), **({"classes": 2} | arguments))


def test_impossible_recall_batches_and_steps() -> None:
    data = make_dataset([9])
    with pytest.raises(InputError, match="10 memory items and 32 targets cannot be drawn from 9 images"):
        RecallSampler(data, memory=10)
    with pytest.raises(InputError, match="batch of 0"):
        BatchSampler(data, batch=0)
    with pytest.raises(InputError, match="Step -1 is negative"):
        BatchSampler(data, batch=2).episode(-1)


def test_real_episodes_look_right(real_data: Path) -> None:
    from vma.data import load_dataset

    data = load_dataset("omniglot", "test", data=real_data)
    episode = EpisodeSampler(data, classes="all", targets=1, shots=19).episode(0)
    check_labels(data, episode)
    assert episode.memory.shape == (144 * 19, 26, 26)
