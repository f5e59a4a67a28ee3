"""Answers equal those of the model without cached keys, and exact ones where these can be computed."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers.oracles import (
    LEVEL,
    SIGMAS,
    chi_square_p_value,
    exact_log_marginal,
    small_convolutional,
    small_mlp,
)
from tests.helpers.trained_models import drawings, trained, trained_mlp
from vma import AddressDistribution, Memory, decomposition
from vma.addressing import Addressing
from vma.errors import InputError
from vma.fewshot import ImageMemory, Norm, TrainedModel
from vma.fewshot.imagination import any_directions, around, main_directions
from vma.fewshot.lookup import LookUp, look_up
from vma.fewshot.novelty import Measures, Rule, rule_of, t_limit
from vma.fewshot.recognition import log_likelihoods
from vma.fewshot.scores import (
    comparable,
    log_p,
    nearest_angle,
    odds_of_turned,
    own_log_p,
    score,
    turned_copies,
    usual,
)

LABELS = ["a", "b", "a", "c", "b"]


@pytest.fixture
def model(tmp_path: Path) -> TrainedModel:
    return trained(tmp_path, small_mlp(height=9, width=8, latent=3))


@pytest.fixture
def memory(model: TrainedModel) -> ImageMemory:
    return five_items(model)


def five_items(model: TrainedModel) -> ImageMemory:
    """Five items, which grew and shrank on the way."""
    images = drawings(6, model.size)
    return model.remember(images[:2], LABELS[:2]).add(images[2:], [*LABELS[2:], "z"]).forget(5)


SIZE = (9, 8)
TARGETS = drawings(3, SIZE, seed=9)


def plain(memory: ImageMemory) -> Memory:
    return Memory.of(memory.items)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def close(found: float | Tensor, expected: float | Tensor) -> None:
    torch.testing.assert_close(torch.as_tensor(found), torch.as_tensor(expected), rtol=1e-6, atol=1e-6)


def test_imagining_at_temperature_one_is_the_models_own_sampling(memory: ImageMemory) -> None:
    imagined = memory.imagine(7, seed=4)
    drawn = memory.model.sample(plain(memory), 7, generator=seeded(4))
    assert torch.equal(imagined.items, drawn.addresses)
    close(imagined.probabilities, drawn.probabilities)
    assert torch.equal(imagined.images, drawn.images)


def test_imagining_follows_the_prior_within_a_label(memory: ImageMemory) -> None:
    items = memory.imagine(2000, label="a", seed=1).items
    p = memory.model.prior(memory.keyed).log_probs.exp()[[0, 2]]
    counts = torch.tensor([int((items == i).sum()) for i in (0, 2)])
    assert counts.sum() == 2000
    assert abs(float(p[0] / p.sum()) - 0.5) > 0.02
    assert chi_square_p_value(counts, p / p.sum()) > LEVEL
    assert set(memory.imagine(5, item=3, seed=1).items.tolist()) == {3}


def test_temperature_scales_the_spread_of_z(memory: ImageMemory) -> None:
    still = memory.imagine(4, item=1, temperature=0.0, seed=1).probabilities
    close(still, still[:1].expand_as(still))
    close(still[:1], memory.vary(1, [(0.0, 0.0)]))
    spread = [
        float(memory.imagine(200, item=1, temperature=t, seed=2).probabilities.std(0).mean())
        for t in (0.25, 1.0, 2.0)
    ]
    assert 0 < spread[0] < spread[1] < spread[2]
    noise = torch.randn(200, 3, generator=imagine_noise(200))
    expected = around(memory.model, memory.items[1:][:1], 2.0 * noise).means
    close(memory.imagine(200, item=1, temperature=2.0, seed=2).probabilities, expected)


def imagine_noise(samples: int) -> torch.Generator:
    """The generator of seed 2 after `samples` addresses were drawn with it."""
    generator = seeded(2)
    torch.rand(samples, dtype=torch.float64, generator=generator)
    return generator


def test_without_a_seed_images_differ(memory: ImageMemory) -> None:
    first, second = (memory.imagine(20).images for _ in range(2))
    assert not torch.equal(first, second)


def test_vary_goes_along_two_orthonormal_directions(memory: ImageMemory) -> None:
    for directions in (
        main_directions(memory.model, memory.keyed, 2),
        any_directions(memory.model, memory.keyed, seeded()),
    ):
        close(directions @ directions.T, torch.eye(2))
    points = [(1.0, 0.0), (0.0, -2.0), (0.5, 0.5)]
    along = torch.tensor(points) @ main_directions(memory.model, memory.keyed, 2)
    for _ in range(2):
        close(memory.vary(2, points), around(memory.model, memory.items[2:][:1], along).means)
    assert not torch.allclose(memory.vary(2, points), memory.vary(2, points, seed=3))


def test_the_main_directions_change_the_image_most(memory: ImageMemory) -> None:
    axes = torch.eye(3)
    up, down = (around(memory.model, memory.items[:1], e).means.flatten(1) for e in (axes, -axes))
    change = up - down
    first, second = (direction @ change for direction in main_directions(memory.model, memory.keyed, 0))
    turned = [torch.nn.functional.normalize(torch.randn(3), dim=0) @ change for _ in range(200)]
    assert first.norm() >= max(each.norm() for each in turned)
    assert abs(float(first @ second)) < 1e-9
    assert first.norm() > second.norm()


def test_one_latent_dimension_has_one_direction(tmp_path: Path) -> None:
    memory = trained(tmp_path, small_mlp(latent=1)).remember(drawings(1, (4, 4)))
    close(memory.vary(0, [(1.0, 5.0)]), memory.vary(0, [(1.0, 0.0)]))


def test_recognising_by_address_sums_the_posterior(memory: ImageMemory) -> None:
    q = memory.model.posterior(TARGETS, plain(memory)).log_probs.exp()
    for found, row in zip(memory.recognise(TARGETS, by="address", top=2), q, strict=True):
        sums = {"a": row[0] + row[2], "b": row[1] + row[4], "c": row[3]}
        assert found.label == max(sums, key=lambda name: sums[name])
        assert list(found.probabilities) == sorted(sums, key=lambda name: -sums[name])
        for name, total in sums.items():
            close(found.probabilities[name], total)
        best = row.argsort(descending=True)[:2]
        assert [i for i, _ in found.items] == best.tolist()
        close(torch.tensor([share for _, share in found.items]), row[best])


def with_posterior(monkeypatch: pytest.MonkeyPatch, q: Sequence[float]) -> None:
    """From now on q(a|x) is `q` for every target."""
    log_probs = torch.tensor(q).log()
    monkeypatch.setattr(
        Addressing, "matched", lambda self, e, keyed: AddressDistribution(log_probs.expand(len(e), -1))
    )


def test_a_class_may_win_without_having_the_best_item(
    model: TrainedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = model.remember(drawings(4, SIZE), ["a", "b", "b", None])
    with_posterior(monkeypatch, [0.35, 0.25, 0.2, 0.2])
    (found,) = memory.recognise(TARGETS[0], by="address", top=3)
    assert found.label == "b"
    assert found.probabilities == pytest.approx({"b": 0.45, "a": 0.35, "(item 3)": 0.2})
    assert [(i, round(share, 9)) for i, share in found.items] == [(0, 0.35), (1, 0.25), (2, 0.2)]
    explained = memory.explain(TARGETS[0], samples=4, top=2)
    assert (explained.label, [each.item for each in explained.top]) == ("b", [0, 1])
    assert [(each.label, round(each.q, 9)) for each in explained.top] == [("a", 0.35), ("b", 0.25)]
    close(explained.q, torch.tensor([0.35, 0.25, 0.2, 0.2]))


def test_likelihoods_of_items_are_those_of_memories_of_one(tmp_path: Path) -> None:
    """Against quadrature over z; the error is that of a mean of weights, by its own spread."""
    model = trained_mlp(tmp_path)
    memory = model.remember(drawings(3, (4, 4)))
    x = torch.from_numpy(drawings(2, (4, 4), seed=5)).double()
    exact = torch.stack([exact_log_marginal(model.model, x, Memory(m[None]), 41) for m in memory.items], 1)
    parts = torch.stack(
        [log_likelihoods(memory.model, memory.keyed, x, 300, seeded(s)) for s in range(25)]
    ).exp()
    error = parts.std(0) / math.sqrt(len(parts))
    assert ((parts.mean(0) - exact.exp()).abs() < SIGMAS * error).all()
    assert (error / exact.exp()).max() < 0.05


def test_recognising_by_likelihood_is_bayes_rule(tmp_path: Path) -> None:
    model = trained_mlp(tmp_path)
    memory = model.remember(drawings(3, (4, 4)), ["a", "b", "a"])
    x = torch.from_numpy(drawings(1, (4, 4), seed=5)).double()
    exact = torch.stack([exact_log_marginal(model.model, x, Memory(m[None]), 41) for m in memory.items], 1)
    p = (exact[0] + model.model.prior(plain(memory)).log_probs.detach()).softmax(0)
    (found,) = memory.recognise(x, by="likelihood", samples=20_000)
    assert found.probabilities == pytest.approx({"a": float(p[0] + p[2]), "b": float(p[1])}, abs=0.01)


def test_answers_do_not_depend_on_what_else_is_asked(model: TrainedModel) -> None:
    memory = model.remember(drawings(40, SIZE), [i % 3 for i in range(40)])
    many = drawings(11, SIZE, seed=8)
    together = memory.recognise(many, by="likelihood", samples=3)
    alone = [memory.recognise(x, by="likelihood", samples=3)[0] for x in many]
    for one, other in zip(together, alone, strict=True):
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-9)
    memory = memory.forget(range(4, 40))
    assert [memory.score(x, samples=4)[0] for x in many[:3]] == memory.score(many[:3], samples=4)
    with pytest.raises(InputError, match="Did you mean 'likelihood'"):
        memory.recognise(many, by="likelihod")


def test_a_score_is_the_bound_of_the_model(memory: ImageMemory) -> None:
    for found, x in zip(memory.score(TARGETS, samples=6, seed=3), TARGETS, strict=True):
        expected = memory.model.bound(x[None], plain(memory), 6, generator=seeded(3))[0]
        close(found.log_p, expected)
        close(found.bits_per_pixel, -expected / (math.log(2) * x.size))
        own = memory.model.bound(x[None], Memory.of(x[None]), 6, generator=seeded(3))[0]
        close(found.surprise, expected / own)


def test_a_score_is_below_the_exact_log_marginal(tmp_path: Path) -> None:
    model = trained_mlp(tmp_path)
    memory = model.remember(drawings(3, (4, 4)))
    x = torch.from_numpy(drawings(1, (4, 4), seed=5)).double()
    exact = float(exact_log_marginal(model.model, x, plain(memory), 41))
    (found,) = memory.score(x, samples=5000)
    assert found.log_p == pytest.approx(exact, abs=0.05)
    few = np.array([memory.score(x, samples=1, seed=s)[0].log_p for s in range(100)])
    assert few.mean() < exact + SIGMAS * few.std() / math.sqrt(len(few))


def first_target(memory: ImageMemory) -> LookUp:
    return memory.look_up(TARGETS[0])


def test_what_is_usual_leaves_each_item_out_and_then_its_class(memory: ImageMemory) -> None:
    model, known, new = memory.model, [], []
    for i in (0, 1, 2, 4):  # the only c has no other of its kind
        x = memory.items[i : i + 1]
        own = model.bound(x, Memory(x), 5, generator=seeded())
        for rows, gone in ((known, [i]), (new, [j for j in range(5) if LABELS[j] == LABELS[i]])):
            rest, copied = memory.forget(gone), [j for j in (0, 1, 2, 4) if j not in gone]
            look, copies = (
                look_up(rest.model, rest.keyed, x),
                turned_copies(memory.model, memory.keyed, copied),
            )
            left_out = float(model.bound(x, plain(rest), 5, generator=seeded()) / own)
            rows.append((left_out, nearest_angle(look), odds_of_turned(look, copies)))
    norm, expected = memory.norm(samples=5), rule_of(np.array(known), np.array(new))
    assert norm.rule is not None
    assert norm.rule.slopes == pytest.approx(expected.slopes, rel=1e-5)
    assert norm.rule.offset == pytest.approx(expected.offset, rel=1e-5)
    assert norm.typical == pytest.approx(np.median([surprise for surprise, _, _ in known]))
    (found,) = memory.score(TARGETS[0], samples=5)
    own = own_log_p(first_target(memory), 5, 0)
    assert found.odds is not None
    measures = Measures(found.surprise, found.angle, found.odds)
    assert found.threshold == pytest.approx(norm.rule.largest_surprise(measures) * own)
    assert found.typical == pytest.approx(norm.typical * own)
    assert found.p_value == pytest.approx(norm.rule.p_value(measures))
    assert found.novel == (found.log_p < found.threshold)


def test_the_angle_is_to_the_nearest_key_in_use(memory: ImageMemory) -> None:
    look = first_target(memory)
    cosines = torch.cosine_similarity(look.queries, memory.keyed.keys)
    close(nearest_angle(look), cosines.max().arccos())
    mask = cosines < cosines.max()
    close(nearest_angle(look.given(memory.keyed.only(mask))), cosines[mask].max().arccos())


def test_the_odds_are_those_of_one_memory_of_items_and_turned_copies(memory: ImageMemory) -> None:
    x = memory.items.new_tensor(TARGETS[0])
    copies = turned_copies(memory.model, memory.keyed, [1, 3])
    q = memory.model.posterior(x[None], memory.keyed.join(copies)).log_probs[0].exp()
    found = odds_of_turned(look_up(memory.model, memory.keyed, x[None]), copies)
    close(found, (q[5:].sum() / q[:5].sum()).log())


@pytest.mark.parametrize(("size", "turns"), [((9, 8), 3), ((8, 8), 7)])
def test_turned_copies_are_all_others(tmp_path: Path, size: tuple[int, int], turns: int) -> None:
    memory = trained(tmp_path, small_mlp(height=size[0], width=size[1])).remember(drawings(3, size))
    copies = turned_copies(memory.model, memory.keyed, [2])
    every = {tuple(image.flatten().tolist()) for image in (*copies.memory.items, memory.items[2])}
    assert (len(copies), len(every)) == (turns, turns + 1)


def test_novelty_is_more_surprise_than_the_limit(memory: ImageMemory) -> None:
    look, copies = first_target(memory), turned_copies(memory.model, memory.keyed, [0])
    surprise = log_p(look, 4, 0) / own_log_p(look, 4, 0)
    rest = 2 * nearest_angle(look) + 3 * odds_of_turned(look, copies)
    for limit, novel in ((surprise * 0.99, True), (surprise * 1.01, False)):
        rule = Rule(Measures(1.0, 2.0, 3.0), limit + rest - t_limit(0.05, 8.0), 8.0)
        found = score(look, Norm(1.0, rule, turned=copies), 4, 0)
        assert found.novel is novel
        assert found.threshold == pytest.approx(limit * found.log_p / surprise)
        assert found.surprise == pytest.approx(surprise)


def test_an_image_is_as_novel_whatever_is_asked_with_it(memory: ImageMemory) -> None:
    together = memory.score(TARGETS, samples=3)
    assert together == memory.score(TARGETS[::-1].copy(), samples=3)[::-1]
    assert together[1:2] == memory.score(TARGETS[1], samples=3)


def test_what_is_usual_is_computed_once(memory: ImageMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*arguments: object) -> Norm:
        calls.append(arguments)
        return usual(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("vma.fewshot.image_memory.usual", counted)
    for _ in range(3):
        memory.score(TARGETS, samples=3)
    assert len(calls) == 1
    memory.relabel(0, "c").score(TARGETS[0], samples=3)
    memory.score(TARGETS[0], samples=2)
    assert len(calls) == 3


def test_few_items_give_no_novelty_and_say_why(model: TrainedModel) -> None:
    for labels, reason in (
        (None, "4 or more items; this memory has 3"),
        (["a", "a", "b"], "4 or more items that share their label with another; this memory has 2"),
        (["a", "b", "c"], "4 or more items that share their label with another; this memory has 0"),
    ):
        (found,) = model.remember(drawings(3, SIZE), labels).score(TARGETS[0], samples=2)
        assert (found.novel, found.p_value, found.threshold, found.typical) == (None, None, None, None)
        assert reason in found.reason
        assert math.isfinite(found.log_p)


def test_which_items_are_compared() -> None:
    assert comparable((None, None, None)) == [0, 1, 2]
    assert comparable(("a", None, "b", "a", "c", "c")) == [0, 3, 4, 5]


def test_the_items_to_compare_of_a_large_memory_are_found_in_few_looks() -> None:
    """Of 100 000 labelled items, each label is looked at a few times, not once for every other one."""
    looks = 0

    class Watched(str):
        def __hash__(self) -> int:
            return super().__hash__()

        def __eq__(self, other: object) -> bool:
            nonlocal looks
            looks += 1
            return super().__eq__(other)

    labels = tuple(Watched(number // 2) for number in range(100_000))
    assert len(comparable(labels)) == len(labels)
    assert looks < 20 * len(labels)


def test_explaining_is_the_decomposition_of_the_bound(memory: ImageMemory) -> None:
    model, x = memory.model, TARGETS[1:2]
    found = memory.explain(TARGETS[1], samples=6, seed=2)
    with torch.no_grad():
        terms = model.terms(x, plain(memory), 6, generator=seeded(2))
        parts, q = decomposition(terms), model.posterior(x, plain(memory)).log_probs[0].exp()
    close(found.q, q)
    close(found.kl_a, parts.kl_a[0])
    close(found.kl_z, parts.kl_z[0])
    close(found.log_p, model.bound(x, plain(memory), 6, generator=seeded(2))[0])
    assert found.top[0].item == int(q.argmax())
    assert found.label == memory.recognise(TARGETS[1], by="address")[0].label
    np.testing.assert_array_equal(found.target.numpy(), TARGETS[1])


def test_the_reconstruction_is_from_the_mean_of_q(
    memory: ImageMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_posterior(monkeypatch, [0.1, 0.1, 0.1, 0.6, 0.1])
    found, model = memory.explain(TARGETS[0], samples=2), memory.model
    assert found.top[0].item == 3
    with torch.no_grad():
        features = model.networks.items(memory.items[3:4])
        x = memory.items.new_tensor(TARGETS[:1])
        half = model.networks.item_half(memory.items[3:4])
        mean = model.networks.encode(model.networks.targets(x), half)[:, :3]
        close(found.reconstruction, model.networks.decode(mean, features.decoder)[0, 0].sigmoid())


def test_convolutional_networks_give_the_same_with_cached_keys(tmp_path: Path) -> None:
    model = trained(tmp_path, small_convolutional())
    memory, x = five_items(model), drawings(1, model.size, seed=9)
    with torch.no_grad():
        terms = model.model.terms(x, plain(memory), 4, generator=seeded(2))
        q = model.model.posterior(x, plain(memory)).log_probs[0].exp()
    found = memory.explain(x, samples=4, seed=2)
    close(found.q, q)
    close(found.kl_z, decomposition(terms).kl_z[0])
    close(found.log_p, model.model.bound(x, plain(memory), 4, generator=seeded(2))[0])
    drawn = model.model.sample(plain(memory), 3, generator=seeded(4))
    close(memory.imagine(3, seed=4).probabilities, drawn.probabilities)
    apart = [model.model.exact_bound(x, Memory(m[None]), 40, generator=seeded(1)) for m in memory.items[:2]]
    together = log_likelihoods(memory.model, memory.keyed, memory.items.new_tensor(x), 40, seeded(1))
    torch.testing.assert_close(together[0, :2], torch.cat(apart), rtol=0, atol=1e-6)


def test_an_mlp_with_a_flat_prior_answers_too(tmp_path: Path) -> None:
    memory = trained(tmp_path, small_mlp(prior="flat", tied=True)).remember(drawings(4, (4, 4)))
    x = drawings(1, (4, 4), seed=2)
    assert memory.imagine(3, seed=0).images.shape == (3, 4, 4)
    assert memory.vary(0, [(1.0, 0.0)]).shape == (1, 4, 4)
    assert sum(memory.recognise(x)[0].probabilities.values()) == pytest.approx(1)
    assert memory.score(x, samples=3)[0].novel is not None
    assert memory.explain(x, samples=3).kl_a >= 0
