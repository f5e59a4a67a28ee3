"""Counted operations are those that one counts by hand."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from benchmarks.speed.measuring import count_flops
from benchmarks.speed.textbook_side import TextbookSide
from benchmarks.speed.workload import Workload, few_shot_preset
from vma import estimate
from vma.networks.convolutional import scales
from vma.reads import Reads


@pytest.mark.parametrize(
    ("kind", "options", "input_size", "pixels"),
    [
        (nn.Conv2d, (1, 1), 7, 7 * 7),
        (nn.Conv2d, (2, 1), 7, 4 * 4),
        (nn.ConvTranspose2d, (2, 1), 4, 4 * 4),
        (nn.ConvTranspose2d, (2, 1, 1), 4, 4 * 4),
    ],
    ids=["convolution", "stride 2", "transposed", "transposed, padded"],
)
def test_a_convolution_forwards_and_backwards(
    kind: type[nn.Module], options: tuple[int, ...], input_size: int, pixels: int
) -> None:
    """Forwards, and as much again for the gradient of the input and for that of the weights."""
    layer = kind(3, 5, 3, *options)
    x = torch.randn(2, 3, input_size, input_size, requires_grad=True)
    once = 2 * 2 * pixels * 9 * 3 * 5
    assert count_flops(lambda: layer(x)) == once
    assert count_flops(lambda: layer(x).sum().backward()) == 3 * once
    assert count_flops(lambda: layer(x.detach()).sum().backward()) == 2 * once


def test_a_linear_layer() -> None:
    layer, x = nn.Linear(11, 7), torch.randn(5, 11, requires_grad=True)
    assert count_flops(lambda: layer(x)) == 2 * 5 * 11 * 7
    assert count_flops(lambda: layer(x).sum().backward()) == 3 * 2 * 5 * 11 * 7


def test_activations_and_gathers_count_nothing() -> None:
    x = torch.randn(5, 5)
    assert count_flops(lambda: x.relu().index_select(0, torch.tensor([1, 1])).log_softmax(-1)) == 0


def pyramid(maps: int, first: int) -> int:
    """Multiply-adds of six layers of an image of 26 × 26 pixels."""
    sizes = scales(26)
    pairs = 2 * sizes[1] ** 2 + 2 * sizes[2] ** 2 + sizes[3] ** 2
    return 9 * maps * (first * sizes[0] ** 2 + maps * pairs)


def upwards(maps: int, halves: int) -> int:
    """Multiply-adds of six layers up, on one half or on both."""
    sizes = scales(26)
    pairs = sizes[3] ** 2 + 2 * sizes[2] ** 2 + 2 * sizes[1] ** 2
    return 9 * halves * maps * (maps * pairs + sizes[0] ** 2)


def head(maps: int, outputs: int) -> int:
    """Multiply-adds of the end of a pyramid."""
    return maps * scales(26)[3] ** 2 * 256 + 256 * outputs


def by_hand(maps: int, reads: int, pairs: int, items: int, memory: int, targets: int) -> tuple[int, int]:
    """Multiply-adds forwards of ours and of the textbook."""
    addressing = (memory + targets) * (pyramid(maps, 1) + head(maps, 128)) + targets * memory * 128
    of_m = pyramid(maps, 1) + head(maps, 128) + head(maps, 64)
    of_z = 64 * 256 + 256 * maps * 16
    first = 9 * maps * 26 * 26
    ours = items * (of_m + first + 64 * 256 + upwards(maps, 1)) + targets * first
    ours += pairs * (pyramid(maps, 0) + head(maps, 128)) + reads * (of_z + upwards(maps, 1) + 26 * 26)
    theirs = reads * (of_m + pyramid(maps, 2) + head(maps, 128) + of_z + 64 * 256 + upwards(maps, 2))
    matrix_vector = memory * 128  # p(a): torch does not count the textbook's way of writing it
    return ours + addressing + matrix_vector, theirs + addressing


def test_the_whole_bound_by_hand_and_what_sharing_saves() -> None:
    """|M| = 32, 128 reads. All pairs different: 1.5 times less; as a trained model reads: 1.9 and more."""
    work = Workload.of(few_shot_preset("omniglot-fewshot-4", 16), items=32, targets=32)
    flat = replace(work, addresses=torch.arange(128).view(32, 4) % 32)
    ratios = []
    for case in (flat, work):
        counts = case.counts()
        sizes = counts["reads"], counts["unique_pairs"], counts["unique_items"]
        side, given = TextbookSide(case), forwards(case)
        hand = by_hand(16, *sizes, 32, 32)
        assert count_flops(given) == 2 * hand[0]
        assert count_flops(side.terms) == 2 * hand[1]
        full = by_hand(64, *sizes, 32, 32)
        ratios.append(full[1] / full[0])
    assert flat.counts() == {"reads": 128, "unique_pairs": 128, "unique_items": 32}
    assert ratios[0] == pytest.approx(1.51, abs=0.02)
    assert 1.85 < ratios[1] < 2.2


def forwards(work: Workload):  # type: ignore[no-untyped-def]
    """Our terms at the workload's addresses."""
    model, x, memory = work.model, work.x, work.memory
    reads = Reads(work.addresses, torch.full(work.addresses.shape, -math.log(4), dtype=torch.float32))

    def run() -> object:
        keyed = model.addressing.keyed(memory)
        p_a, q_a = model.addressing.prior(keyed), model.addressing.posterior(x, keyed)
        return estimate(model.terms_at(x, memory, p_a, q_a, reads, work.noise))

    return run
