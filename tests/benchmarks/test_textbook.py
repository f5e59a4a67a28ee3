"""The textbook, with which `benchmarks.speed` compares, computes what ours computes: values and gradients."""

import pytest
import torch

from benchmarks import textbook
from benchmarks.speed.textbook_side import TextbookSide, check_equal
from benchmarks.speed.workload import Workload, few_shot_preset
from benchmarks.textbook import Textbook, textbook_of, weights_of
from tests.helpers.oracles import distributions, episode, small_convolutional
from vma import VMA, InputError, ModelConfig, estimate
from vma.build import build_vma
from vma.reads import independent

CONFIGS = {
    "paper": small_convolutional(),
    "modern": small_convolutional(style="modern"),
    "26 pixels": ModelConfig(maps=4, hidden=(9,), latent=3, matching=5),
}


@pytest.mark.parametrize("per_target", [False, True], ids=["one memory", "memory per target"])
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_the_textbook_has_our_values_and_gradients(config: ModelConfig, per_target: bool) -> None:
    model = build_vma(config)
    torch.nn.init.normal_(model.addressing.prior_query)
    x, memory = episode(config, 3, 5)
    chosen, p_a, q_a = distributions(model, x, memory)
    reads, noise = independent(q_a, 4, chosen), torch.randn(3, 4, config.latent)
    book = textbook_of(model)
    items = chosen.items.expand(3, *chosen.items.shape) if per_target else chosen.items
    ours = model.terms_at(x, chosen, p_a, q_a, reads, noise)
    theirs = book(x, items, reads.addresses, noise)
    for name in ("log_p_a", "log_q_a", "log_p_z", "log_q_z", "log_p_x", "log_mass", "z"):
        expected = getattr(ours, name).expand_as(getattr(theirs, name))
        torch.testing.assert_close(getattr(theirs, name), expected, rtol=1e-8, atol=1e-8)
    for terms in (ours, theirs):
        estimate(terms).loss.backward()
    gradients = weights_of({name: p.grad for name, p in model.named_parameters()})
    for name, parameter in book.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-8, atol=1e-8)
    assert max(float(g.abs().max()) for g in gradients.values()) > 1e-3


def test_every_target_reads_its_own_memory() -> None:
    config = small_convolutional()
    model = build_vma(config)
    book = textbook_of(model)
    memories = [episode(config, 1, 4)[1] for _ in range(3)]
    x, addresses, noise = episode(config, 3, 1)[0], torch.randint(4, (3, 2)), torch.randn(3, 2, config.latent)
    together = book(x, torch.stack([m.items for m in memories]), addresses, noise).log_w
    for i, memory in enumerate(memories):
        alone = book(x[i : i + 1], memory.items, addresses[i : i + 1], noise[i : i + 1]).log_w
        torch.testing.assert_close(together[i : i + 1], alone, rtol=1e-10, atol=1e-10)


def test_weights_are_joined_by_name_and_all_are_used() -> None:
    model = build_vma(small_convolutional())
    joined, book = weights_of(dict(model.named_parameters())), textbook_of(model)
    assert joined.keys() == dict(book.named_parameters()).keys()
    assert sum(p.numel() for p in joined.values()) == sum(p.numel() for p in model.parameters())


def test_a_model_that_the_textbook_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="few-shot presets"):
        Textbook(small_convolutional(tied=True))


@pytest.fixture(scope="module")
def work() -> Workload:
    return Workload.of(few_shot_preset("omniglot-fewshot-4", 4), items=8, targets=4)


@pytest.mark.parametrize("per_target", [False, True], ids=["one memory", "memory per target"])
def test_the_check_passes_for_equal_sides(work: Workload, per_target: bool) -> None:
    check_equal(work, per_target=per_target)


def test_the_check_fails_for_different_sides(work: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = textbook.textbook_of

    def wrong(model: VMA) -> torch.nn.Module:
        book = honest(model)
        with torch.no_grad():
            book.decoder.layers[2].weight[0, 0, 0, 0] += 1e-3
        return book

    monkeypatch.setattr(textbook, "textbook_of", wrong)
    with pytest.raises(AssertionError, match="do not compute the same thing"):
        check_equal(work)


def test_the_check_covers_dreg() -> None:
    settings = few_shot_preset("omniglot-fewshot-4-fast", 8)
    check_equal(Workload.of(settings, items=8, targets=4))


def test_an_update_of_the_textbook_moves_nothing_and_leaves_our_gradients(work: Workload) -> None:
    side = TextbookSide(work)
    before = {name: p.detach().clone() for name, p in side.book.named_parameters()}
    side.update()
    work.update()
    ours = weights_of({name: p.grad for name, p in work.model.named_parameters()})
    for name, parameter in side.book.named_parameters():
        torch.testing.assert_close(parameter, before[name], rtol=0, atol=0)
        scale = float(ours[name].abs().max())
        torch.testing.assert_close(parameter.grad, ours[name], rtol=1e-2, atol=1e-3 * scale + 1e-6)


def test_an_update_draws_the_reads_that_the_textbook_is_given(work: Workload) -> None:
    terms, side = work.terms(), TextbookSide(work)
    torch.testing.assert_close(terms.log_w, side.terms().log_w, rtol=1e-5, atol=1e-3)
    assert terms.log_w.dtype == torch.float32
