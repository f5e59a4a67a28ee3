"""K distinct addresses by Gumbel-top-k: the unordered-set estimator (Kool, van Hoof and Welling, 2020)."""

import torch
from jaxtyping import Float
from torch import Tensor

from vma.bounds import BoundTerms, elbo
from vma.errors import InputError
from vma.estimators.estimate import Estimate, Estimator
from vma.subsets import log_leave_one_out_ratios


@torch.no_grad()
def baseline(terms: BoundTerms, log_rest: Float[Tensor, "batch"]) -> Float[Tensor, "batch samples"]:
    """b_s = q(s) f(s) + Σ_{s'≠s} q(s') R^{∖s}(S,s') f(s'), f = log w; Σ_s ∇q(s) R(S,s) b_s has expectation 0."""
    q, f = terms.log_q_a.exp(), terms.log_w
    columns = []
    for s in range(terms.samples):
        remaining = [i for i in range(terms.samples) if i != s]
        ratios = log_leave_one_out_ratios(terms.log_q_a, log_rest, remaining)
        from_others = [(terms.log_q_a[:, i] + ratios[i]).exp() * f[:, i] for i in remaining]
        columns.append(sum(from_others, start=q[:, s] * f[:, s]))
    return torch.stack(columns, dim=1)


def without_replacement(terms: BoundTerms) -> Estimate:
    """Σ_{s∈S} q(s) R(S,s) [∇ log w_s + (log w_s − b_s) ∇ log q(s)]: unbiased for the ELBO."""
    if terms.log_rest is None:
        raise InputError("without-replacement needs reads that were drawn without replacement.")
    bound = elbo(terms)
    signal = (terms.log_w - baseline(terms, terms.log_rest)).detach()
    surrogate = bound + (terms.log_mass.exp() * signal * terms.log_q_a).sum(-1)
    return Estimate(bound, surrogate.mean(), terms)


WITHOUT_REPLACEMENT = Estimator(
    "without-replacement", without_replacement, "without-replacement", "elbo", True, 2, "K distinct addresses"
)
