"""The rules of recognition: what they have in common, and where one becomes another."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.helpers.oracles import small_mlp
from tests.helpers.trained_models import drawings, trained
from vma.errors import InputError
from vma.fewshot import ImageMemory
from vma.fewshot.lookup import look_up
from vma.fewshot.recognition import DEFAULT, FEW, RULES, Rule, log_likelihoods, log_likelihoods_at, shares
from vma.memory import KeyedMemory
from vma.model import VMA

ROOT = Path(__file__).parents[2]
SIZE, SAMPLES, MASKED = (9, 8), 3, 4


@pytest.fixture
def memory(tmp_path: Path) -> ImageMemory:
    """Twenty items of five classes: more than q(a|x) proposes."""
    model = trained(tmp_path, small_mlp(height=SIZE[0], width=SIZE[1], latent=3))
    return model.remember(drawings(20, SIZE), [f"class {i % 5}" for i in range(20)])


@pytest.fixture
def x() -> Tensor:
    return torch.from_numpy(drawings(11, SIZE, seed=9)).double()


def found(model: VMA, keyed: KeyedMemory, x: Tensor, rule: Rule) -> Tensor:
    classes = [i % 5 for i in range(len(keyed))]
    return shares(look_up(model, keyed, x), classes, rule, SAMPLES, torch.Generator().manual_seed(1))


def log_joint(model: VMA, keyed: KeyedMemory, x: Tensor) -> Tensor:
    """log p(a) p(x|m_a) of every item, with the noise of `found`."""
    likelihoods = log_likelihoods(model, keyed, x, SAMPLES, torch.Generator().manual_seed(1))
    return (model.prior(keyed).log_probs + likelihoods).detach()


@pytest.mark.parametrize("name", RULES)
def test_probabilities_sum_to_one(name: str, memory: ImageMemory, x: Tensor) -> None:
    for answer in memory.recognise(x.numpy(), by=name, top=20):
        assert sum(answer.probabilities.values()) == pytest.approx(1)
        assert sum(share for _, share in answer.items) == pytest.approx(1)
        assert answer.label == max(answer.probabilities, key=lambda each: answer.probabilities[each])


def test_proposing_every_item_and_counting_the_likelihood_alone_is_the_likelihood_rule(
    memory: ImageMemory, x: Tensor
) -> None:
    expected = log_joint(memory.model, memory.keyed, x).softmax(1)
    for proposals in (None, 20, 1000):
        torch.testing.assert_close(found(memory.model, memory.keyed, x, Rule(proposals, 0.0, 1.0)), expected)
    torch.testing.assert_close(found(memory.model, memory.keyed, x, RULES["likelihood"]), expected)


@pytest.mark.parametrize("proposals", [0, 7, None])
def test_counting_where_the_model_looks_alone_is_q(
    proposals: int | None, memory: ImageMemory, x: Tensor
) -> None:
    q = memory.model.posterior(x, memory.keyed).log_probs.exp().detach()
    torch.testing.assert_close(found(memory.model, memory.keyed, x, Rule(proposals, 1.0, 0.0)), q)


def test_few_proposals_share_their_mass_by_both_and_the_others_keep_q(memory: ImageMemory, x: Tensor) -> None:
    """Item by item, as the formula says."""
    log_q, joint = (
        memory.model.posterior(x, memory.keyed).log_probs.detach(),
        log_joint(memory.model, memory.keyed, x),
    )
    q, proposed = log_q.exp(), log_q.topk(6).indices
    got = found(memory.model, memory.keyed, x, Rule(6, 0.7, 0.2))
    for row, own, log_p, chosen in zip(got, q, joint, proposed, strict=True):
        best = set(chosen.tolist())
        weights = {a: float(own[a]) ** 0.7 * float((0.2 * (log_p[a] - log_p.max())).exp()) for a in best}
        mass = sum(float(own[a]) for a in best)
        for a in range(20):
            expected = mass * weights[a] / sum(weights.values()) if a in best else float(own[a])
            assert float(row[a]) == pytest.approx(expected)
    assert (got - q).abs().max() > 1e-3


def test_several_items_of_a_class_are_several_witnesses(memory: ImageMemory, x: Tensor) -> None:
    """With four items of each class, p(c|x) is to the power of 4^κ, and shares within a class stay as they are."""
    flat, sharp = (found(memory.model, memory.keyed, x, Rule(7, 0.8, 0.1, kappa)) for kappa in (0.0, 0.5))
    before, after = (each.unflatten(1, (4, 5)) for each in (flat, sharp))
    expected = before.sum(1) ** 2 / (before.sum(1) ** 2).sum(1, keepdim=True)
    torch.testing.assert_close(after.sum(1), expected)
    torch.testing.assert_close(after / after.sum(1, keepdim=True), before / before.sum(1, keepdim=True))
    alone = Rule(7, 0.8, 0.1, 0.5).sharpen(flat, range(20))
    torch.testing.assert_close(alone, flat)


@pytest.mark.parametrize("name", RULES)
def test_items_that_cannot_be_read_get_nothing(name: str, memory: ImageMemory, x: Tensor) -> None:
    mask = torch.arange(20) % MASKED != 0
    got = found(memory.model, memory.keyed.only(mask), x, RULES[name])
    assert (got[:, ~mask] == 0).all()
    torch.testing.assert_close(got.sum(1), torch.ones(len(x)))
    kept = replace(RULES[name], kappa=0.0)
    alone = found(memory.model, memory.keyed.keep(mask.nonzero().squeeze(1)), x, kept)
    torch.testing.assert_close(found(memory.model, memory.keyed.only(mask), x, kept)[:, mask], alone)


@pytest.mark.parametrize("name", RULES)
def test_an_answer_does_not_depend_on_what_else_is_asked(name: str, memory: ImageMemory, x: Tensor) -> None:
    together = found(memory.model, memory.keyed, x, RULES[name])
    alone = torch.cat([found(memory.model, memory.keyed, each[None], RULES[name]) for each in x])
    torch.testing.assert_close(together, alone)


def test_the_joined_rule_is_the_default_and_names_are_checked(memory: ImageMemory, x: Tensor) -> None:
    first, again = memory.recognise(x.numpy()), memory.recognise(x.numpy(), by=DEFAULT)
    assert first == again != memory.recognise(x.numpy(), by="address")
    with pytest.raises(InputError, match="Did you mean 'joined'"):
        memory.recognise(x.numpy(), by="join")


def test_only_the_items_that_q_proposes_are_tried(
    memory: ImageMemory, x: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def counting(model: VMA, keyed: KeyedMemory, x: Tensor, addresses: Tensor, noise: Tensor) -> Tensor:
        tried.append(addresses.numel())
        return log_likelihoods_at(model, keyed, x, addresses, noise)

    monkeypatch.setattr("vma.fewshot.recognition.log_likelihoods_at", counting)
    sums = {}
    for name in RULES:
        tried.clear()
        memory.recognise(x.numpy(), by=name)
        sums[name] = sum(tried) // len(x)
    assert sums == {"joined": FEW, "address": 0, "proposals": FEW, "likelihood": 20}


@pytest.mark.parametrize("name", ["joined", "proposals"])
def test_the_constants_are_those_that_held_out_classes_chose(name: str) -> None:
    """Within a hundredth of a nat of the best on the grid, and within the promised calibration error."""
    found = json.loads((ROOT / "results/recognition-rules.json").read_text())
    (own,) = (rule for rule in found["rules"] if {**rule, **asdict(RULES[name])} == rule)
    assert own["log_prob"] > found["best"][name]["log_prob"] - 0.01
    assert own["calibration_error"] <= 0.05
