"""One image examined at once: the answers of recognise, explain and score, and how often a network is asked."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.helpers.trained_models import drawings, small_mlp, trained
from vma.fewshot import ImageMemory
from vma.fewshot.examination import Examination, examine
from vma.fewshot.recognition import DEFAULT, RULES

SIZE, SAMPLES, DRAWS = (9, 8), 5, 3
TARGET = drawings(1, SIZE, seed=9)[0]


@pytest.fixture
def memory(tmp_path: Path) -> ImageMemory:
    """Twenty items: more than q(a|x) proposes."""
    model = trained(tmp_path, small_mlp(height=SIZE[0], width=SIZE[1], latent=3))
    return model.remember(drawings(20, SIZE), [f"class {i % 5}" for i in range(20)])


def examined(memory: ImageMemory) -> Examination:
    norm = memory.norm(SAMPLES, 0)
    return examine(memory.look_up(TARGET), memory.names, RULES[DEFAULT], norm, SAMPLES, DRAWS, 0)


def test_the_answers_are_those_of_one_question_after_the_other(memory: ImageMemory) -> None:
    found = examined(memory)
    (recognised,) = memory.recognise(TARGET, samples=DRAWS, top=20)
    (score,) = memory.score(TARGET, samples=SAMPLES)
    explained = memory.explain(TARGET, samples=SAMPLES)
    assert found.recognised.label == recognised.label
    assert dict(found.recognised.items) == pytest.approx(dict(recognised.items))
    assert found.recognised.probabilities == pytest.approx(recognised.probabilities)
    assert found.score.p_value == pytest.approx(score.p_value)
    assert (found.score.log_p, found.kl_a, found.kl_z) == pytest.approx(
        (explained.log_p, explained.kl_a, explained.kl_z)
    )
    assert torch.equal(found.target, explained.target)


def test_the_matching_networks_run_once_and_the_decoder_three_times(
    memory: ImageMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.norm(SAMPLES, 0)
    addressing, networks = memory.model.addressing, memory.model.networks
    calls: Counter[str] = Counter()
    for matching in filter(None, {addressing.key, addressing.query}):
        matching.register_forward_hook(lambda *_: calls.update(["matching"]))
    for name in ("decode", "targets"):
        monkeypatch.setattr(networks, name, counted(getattr(networks, name), name, calls))
    examined(memory)
    # Decoded: all reads of the memory; those of a memory of the image alone; the reconstruction.
    assert calls == {"matching": 1, "decode": 3, "targets": 3}


def counted(ask: Callable[..., Any], name: str, calls: Counter[str]) -> Callable[..., Any]:
    def asking(*args: Any) -> Any:
        calls[name] += 1
        return ask(*args)

    return asking
