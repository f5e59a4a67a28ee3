"""An untrained model whose q(a|x) is as sharp as a trained one's, so that its reads repeat addresses as often."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vma.addressing import AddressDistribution
from vma.memory import Memory
from vma.model import VMA

# The number of different addresses among a target's K reads, for a model trained on Omniglot: a row for each K, a
# column for each |M|; from results/trained-addresses.json.
TRAINED_READS, TRAINED_ITEMS = (4, 32, 1000), (4, 32, 2304)
TRAINED_PAIRS = ((1.54, 1.70, 2.96), (2.17, 2.90, 11.67), (2.92, 5.49, 63.74))


def trained_pairs(items: int, samples: int) -> float:
    """The number of different addresses among K reads by a trained model, by power laws in |M| and K.

    The laws go through measured numbers. They have no limit, so the result is kept below three quarters of K and
    of |M|.
    """
    of_reads = [power_law(items, TRAINED_ITEMS, pairs) for pairs in TRAINED_PAIRS]
    return max(1.0, min(power_law(samples, TRAINED_READS, of_reads), 0.75 * min(items, samples)))


def power_law(x: int, xs: Sequence[int], ys: Sequence[float]) -> float:
    """y at x, where log y is linear in log x between the three points and beyond them."""
    i = 0 if x < xs[1] else 1
    return ys[i] * (ys[i + 1] / ys[i]) ** (math.log(x / xs[i]) / math.log(xs[i + 1] / xs[i]))


@torch.no_grad()
def sharpen_(model: VMA, x: Tensor, memory: Memory, samples: int) -> None:
    """Sharpen q(a|x), in place, until K reads repeat addresses as often as a trained model's do.

    All reads of an untrained model differ. Here the query network becomes a copy of the key network. Both are
    centred on this memory, so that a target finds the items that look like it, and the queries are made as long
    as necessary.
    """
    addressing = model.addressing
    key, query = addressing.key, addressing.query
    assert query is not None
    last_layer(key).bias.sub_(addressing.embedded(memory).mean(0))
    query.load_state_dict(key.state_dict())
    scores = addressing.similarity.scores(addressing.keyed(memory).keys, query(x)).double()
    length = length_for_pairs(scores, samples, trained_pairs(len(memory), samples))
    for parameter in last_layer(query).parameters():
        parameter.mul_(length)


def last_layer(network: nn.Module) -> nn.Linear:
    """The last fully-connected layer."""
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)][-1]


def expected_pairs(q_a: AddressDistribution, samples: int) -> float:
    """Σ_a 1 − (1 − q(a|x))^K, the expected number of different addresses among K reads, averaged over targets."""
    never = samples * torch.log1p(-q_a.log_probs.detach().exp().clamp(max=1))
    return float(-torch.expm1(never).sum(-1).mean())


def length_for_pairs(scores: Float[Tensor, "batch memory"], samples: int, pairs: float) -> float:
    """s for which K reads of softmax(s · scores) have `pairs` different addresses per target, by bisection."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        found = expected_pairs(AddressDistribution.of_scores(math.exp(middle) * scores), samples)
        low, high = (middle, high) if found > pairs else (low, middle)
    return math.exp(high)
