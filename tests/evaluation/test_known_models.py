"""Classification, posterior and samples on models whose answers are known."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers.known_models import CONFIG, Blind, Perfect, code, coded, trained
from tests.helpers.oracles import (
    LEVEL,
    bits,
    chi_square_p_value,
    episode,
    exact_log_marginal,
    small_convolutional,
    small_mlp,
)
from vma import AddressDistribution, InputError, Memory
from vma.addressing import class_mass
from vma.build import build_model, build_vma
from vma.data.dataset import Dataset
from vma.evaluation import (
    ClassesOptions,
    ClassifyOptions,
    NllOptions,
    PosteriorOptions,
    SamplesOptions,
    TrainedRun,
    classes_sweep,
    classify,
    nll,
    posterior,
    samples,
)
from vma.evaluation.classification import trial_draw
from vma.evaluation.json_values import pack, plain
from vma.fewshot.recognition import class_log_likelihoods
from vma.plotting.embedding import unpack
from vma.runs.settings import EpisodeSettings, TrainSettings


def test_a_perfect_model_classifies_perfectly_and_a_blind_one_by_chance() -> None:
    options = ClassifyOptions(tasks=((5, 1), (4, 2)), trials=40, samples=1)
    perfect = classify(trained(Perfect(CONFIG), coded(9, 4)), options).results()
    blind = classify(trained(Blind(CONFIG), coded(9, 4)), options).results()
    for task in perfect.tasks:
        assert (task.by_address.value, task.by_likelihood.value) == (1.0, 1.0)
        assert task.by_address.trials == 40
    assert [task.by_address.value for task in blind.tasks] == [0.2, 0.25]
    assert [task.chance for task in blind.tasks] == [0.2, 0.25]


class Recogniser(Perfect):
    """q(a|x) ∝ exp(sharpness · [m_a is of the class of x]): 1000 is perfect, 0 is uniform, −1000 always wrong."""

    def __init__(self, sharpness: float) -> None:
        super().__init__(CONFIG)
        self.sharpness = sharpness

    def posterior(self, x: Tensor, memory: Memory | None = None) -> AddressDistribution:
        assert memory is not None
        same = code(x)[:, None] == code(memory.items)[None]
        return AddressDistribution.of_scores(self.sharpness * same.double())


@pytest.mark.parametrize(("sharpness", "expected"), [(1000.0, 1.0), (0.0, 0.2), (-1000.0, 0.0)])
def test_accuracy_of_a_perfect_an_undecided_and_a_wrong_posterior(sharpness: float, expected: float) -> None:
    options = ClassifyOptions(tasks=((5, 1),), trials=100)
    (task,) = classify(trained(Recogniser(sharpness), coded(12, 9)), options).results().tasks
    assert task.by_address.value == pytest.approx(expected)
    assert task.by_address.low <= expected <= task.by_address.high
    assert task.by_address.trials == 100


def test_accuracy_sums_over_the_shots_of_a_class() -> None:
    q = torch.tensor([[0.4, 0.3, 0.3, 0.0]])
    assert class_mass(q, torch.tensor([0, 1, 1, 2]), 3).tolist() == [pytest.approx([0.4, 0.6, 0.0])]


def test_the_likelihood_of_classes_sums_to_that_of_the_memory() -> None:
    model = build_vma(small_mlp())
    x, memory = episode(model.config, 3, 6)
    assert memory is not None
    labelled = Memory(memory.items, torch.tensor([0, 1, 1, 2, 0, 2]))
    scores = class_log_likelihoods(model, labelled, x, 3, 3000)
    torch.testing.assert_close(scores.logsumexp(-1), exact_log_marginal(model, x, memory), rtol=0, atol=0.02)
    with pytest.raises(InputError, match="labels"):
        class_log_likelihoods(model, memory, x, 3, 2)


def test_only_a_model_with_raw_memory_can_classify_or_be_inspected() -> None:
    vae = build_model(small_convolutional(model="vae"))
    for ask, options in ((classify, ClassifyOptions()), (posterior, PosteriorOptions())):
        with pytest.raises(InputError, match="raw memory"):
            ask(trained(vae, coded(4, 4)), options)


def test_targets_of_an_absent_class_are_flagged() -> None:
    options = PosteriorOptions(episodes=3, classes=4, shots=2, targets=2, samples=2)
    found = posterior(trained(Perfect(CONFIG), coded(9, 6)), options).results()
    assert found.found.value == 1.0
    assert found.novelty_auc == 1.0
    assert found.novelty_auc_entropy == 1.0
    assert found.in_memory.entropy.value == pytest.approx(math.log(2))
    assert found.absent.entropy.value == pytest.approx(math.log(8))
    kinds = [target.kind for target in found.shown.looked_up]
    assert kinds == ["found"] * 8 + ["absent"] * 2
    assert unpack(plain(found.shown.memory)).shape == (8, 4, 4)
    assert len(found.shown.memory_labels) == 8


def test_nll_counts_targets_and_resolves_what_was_left_out() -> None:
    evaluation = nll(trained(build_vma(CONFIG), coded(8, 6), shots=3), NllOptions(episodes=4, samples=5))
    found = evaluation.results()
    assert evaluation.about["classes"] == 2
    assert evaluation.about["shots"] == 3
    assert found.number_of_targets == 8
    assert found.nll.value > 0
    assert found.items == 6
    assert 1 <= found.items_in_use <= 6
    assert found.entropy_p_a == pytest.approx(math.log(6))  # the prior starts flat


def test_a_model_trained_on_sequences_gets_test_episodes_of_its_own() -> None:
    sequences = EpisodeSettings("sequence", classes=2, targets=10, shots=20)
    settings = TrainSettings(model=small_convolutional(model="gmn"), episode=sequences)
    asked = TrainedRun(build_vma(CONFIG), coded(8, 9), settings)
    evaluation = nll(asked, NllOptions(episodes=1, samples=2))
    assert [evaluation.about[key] for key in ("classes", "targets", "shots")] == [2, 4, 4]
    assert classes_sweep(asked, ClassesOptions(classes=(1,))).about["shots"] == 4


def test_a_learned_memory_says_how_much_of_it_is_in_use() -> None:
    config = small_mlp(learned_items=6)
    options = NllOptions(episodes=3, targets=4, samples=2)
    found = nll(trained(build_vma(config), coded(8, 6)), options).results()
    assert found.items == 6
    assert 1 <= found.items_in_use <= 6
    assert 0 < found.entropy_p_a <= math.log(6) + 1e-9


def test_samples_by_item_and_of_a_learned_memory() -> None:
    model = build_vma(small_mlp())
    options = SamplesOptions(rows=3, samples=4, shots=2, real=2)
    found = plain(samples(trained(model, coded(8, 6)), options).results())
    shapes = {name: unpack(found[name]).shape for name in ("items", "real", "probabilities", "binary")}
    pair, four = (3, 2, 4, 4), (3, 4, 4, 4)
    assert shapes == {"items": pair, "real": pair, "probabilities": four, "binary": four}
    learned = build_vma(small_mlp(learned_items=5))
    row = samples(trained(learned, coded(8, 6)), SamplesOptions(rows=3, samples=4)).results()
    assert len(set(row.addresses)) == 3
    assert unpack(plain(row.probabilities)).shape == (3, 4, 4, 4)


def test_rows_of_a_learned_memory_share_their_item() -> None:
    learned = build_vma(small_mlp(learned_items=5))
    with torch.no_grad():  # z of no effect: a row's images are then all alike, and rows differ
        learned.networks.decoder_z.weight.zero_()
        learned.networks.decoder_m.weight.mul_(5)
    row = samples(trained(learned, coded(8, 6)), SamplesOptions(rows=3, samples=4)).results()
    images = unpack(plain(row.probabilities))
    assert np.ptp(images, axis=1).max() == 0
    assert np.abs(images[0] - images[1]).max() > 0


def test_images_survive_json() -> None:
    images = bits(3, 5, 7)
    assert (unpack(json.loads(json.dumps(plain(pack(images))))) == images.numpy()).all()


def alphabet_data(sizes: dict[str, int]) -> Dataset:
    """`coded` images whose classes are called alphabet/character."""
    names = tuple(f"{name}/character{i:02}" for name, count in sizes.items() for i in range(count))
    return replace(coded(len(names), 3), classes=names)


def test_within_alphabets_all_ways_of_a_trial_are_of_one_and_large_ones_come_more_often() -> None:
    sizes = {"Greek": 12, "Korean": 6, "Runes": 3, "Latin": 2}
    data, trials = alphabet_data(sizes), 600
    draw = trial_draw(data, 3, 2, 7, "alphabet")
    counts = dict.fromkeys(sizes, 0)
    for step in range(trials):
        (alphabet,) = {name_of(data, image) for image in draw(step).memory}
        counts[alphabet] += 1
        assert {name_of(data, image) for image in draw(step).targets} == {alphabet}
    assert counts.pop("Latin") == 0
    expected = torch.tensor([12.0, 6.0, 3.0]) / 21
    assert chi_square_p_value(torch.tensor(list(counts.values())), expected) > LEVEL


def name_of(data: Dataset, image: np.ndarray) -> str:
    """The alphabet of an image's class."""
    return data.classes[int(code(torch.from_numpy(image)[None] / 255))].split("/")[0]


def test_trials_within_alphabets_are_functions_of_seed_and_step() -> None:
    data = alphabet_data({"Greek": 5, "Korean": 5})
    first, again, other = (trial_draw(data, 2, 1, seed, "alphabet") for seed in (1, 1, 2))
    steps = [4, 0, 9]
    assert all((first(s).memory == again(s).memory).all() for s in reversed(steps))
    assert any((first(s).memory != other(s).memory).any() for s in steps)


def test_a_perfect_model_is_perfect_within_alphabets_too_and_the_answer_says_so() -> None:
    options = ClassifyOptions(tasks=((3, 1),), trials=25, within="alphabet")
    asked = classify(trained(Perfect(CONFIG), alphabet_data({"Greek": 4, "Korean": 3})), options)
    assert asked.about["within"] == "alphabet"
    (task,) = asked.results().tasks
    assert task.by_address.value == 1.0


def test_data_without_alphabets_or_with_small_ones_is_refused_in_a_sentence() -> None:
    within = ClassifyOptions(tasks=((3, 1),), within="alphabet")
    with pytest.raises(InputError, match="coded has no alphabets"):
        classify(trained(Perfect(CONFIG), coded(9, 4)), within)
    with pytest.raises(
        InputError, match=r"No alphabet of coded .all. has 3 classes: ask for 2 ways or fewer"
    ):
        classify(trained(Perfect(CONFIG), alphabet_data({"Greek": 2, "Korean": 1})), within)
    with pytest.raises(InputError, match="Did you mean 'alphabet'"):
        classify(trained(Perfect(CONFIG), coded(9, 4)), replace(within, within="alphabets"))
