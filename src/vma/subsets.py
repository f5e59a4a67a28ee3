"""Probabilities of sets of addresses that are drawn without replacement (Kool, van Hoof and Welling, 2020)."""

from collections.abc import Sequence
from itertools import combinations

import torch
from jaxtyping import Float
from torch import Tensor

from vma.errors import InputError

# p(S) is summed over the 2^K subsets of S.
MOST_SAMPLES = 10


def log_probability_of_set(
    log_q: Float[Tensor, "batch samples"], log_rest: Float[Tensor, "batch"], members: Sequence[int]
) -> Float[Tensor, "batch"]:
    """log P(the first |S| draws without replacement are the set S), S = `members`, from a domain S ∪ rest.

    P(T) = Σ_{i∈T} P(T∖i) q_i / (mass of the domain outside T∖i), from the empty set up to S. The mass outside is
    summed from what remains, never taken as one minus what is gone, so a sharp q loses no digits.
    """
    log_p = {frozenset[int](): torch.zeros_like(log_rest)}
    for size in range(1, len(members) + 1):
        for chosen in map(frozenset, combinations(members, size)):
            ways = []
            for last in chosen:
                left = [log_q[:, i] for i in members if i == last or i not in chosen]
                log_left = torch.logsumexp(torch.stack([log_rest, *left]), dim=0)
                ways.append(log_p[chosen - {last}] + log_q[:, last] - log_left)
            log_p[chosen] = torch.logsumexp(torch.stack(ways), dim=0)
    return log_p[frozenset(members)]


def log_leave_one_out_ratios(
    log_q: Float[Tensor, "batch samples"], log_rest: Float[Tensor, "batch"], members: Sequence[int]
) -> dict[int, Float[Tensor, "batch"]]:
    """log R(S,s) = log P(S∖s | s not in the domain) − log P(S), for each s in S = `members`."""
    whole = log_probability_of_set(log_q, log_rest, members)
    return {
        s: log_probability_of_set(log_q, log_rest, [i for i in members if i != s]) - whole for s in members
    }


@torch.no_grad()
def log_mass_of_set(
    log_q: Float[Tensor, "batch samples"], log_rest: Float[Tensor, "batch"]
) -> Float[Tensor, "batch samples"]:
    """log q(s) R(S,s), the share of q that each s stands for: E_S[Σ_s q(s) R(S,s) f(s)] = E_q[f]."""
    samples = log_q.shape[1]
    if samples > MOST_SAMPLES:
        raise InputError(
            f"without-replacement works with K <= {MOST_SAMPLES} distinct addresses, not {samples}."
        )
    ratios = log_leave_one_out_ratios(log_q, log_rest, range(samples))
    return log_q + torch.stack([ratios[s] for s in range(samples)], dim=1)
