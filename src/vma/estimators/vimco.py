"""VIMCO with the paper's arithmetic leave-one-out mean (equation 8), and with the original geometric one."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from vma.bounds import BoundTerms, multi_sample_bound
from vma.estimators.estimate import Estimate, Estimator

LogWeights = Float[Tensor, "batch samples"]


def others(log_w: LogWeights) -> Float[Tensor, "batch samples others"]:
    """For each k, a row of log w with its own entry at −inf, so that nothing is subtracted in linear space."""
    own = torch.eye(log_w.shape[1], dtype=torch.bool, device=log_w.device)
    return log_w.unsqueeze(1).expand(-1, log_w.shape[1], -1).masked_fill(own, -torch.inf)


def arithmetic_leave_one_out(log_w: LogWeights) -> LogWeights:
    """L_{−k} = log 1/(K−1) Σ_{k'≠k} w_{k'}."""
    return torch.logsumexp(others(log_w), dim=-1) - math.log(log_w.shape[1] - 1)


def geometric_leave_one_out(log_w: LogWeights) -> LogWeights:
    """L_{−k} = log 1/K (Σ_{k'≠k} w_{k'} + exp mean_{k'≠k} log w_{k'})."""
    samples = log_w.shape[1]
    mean = (log_w.sum(-1, keepdim=True) - log_w) / (samples - 1)
    return torch.logaddexp(torch.logsumexp(others(log_w), dim=-1), mean) - math.log(samples)


def with_leave_one_out(terms: BoundTerms, leave_one_out: Callable[[LogWeights], LogWeights]) -> Estimate:
    """L + Σ_k [L − L_{−k}] log q(a_k|x), where the bracket is not differentiated.

    The derivative of L itself is Σ_k ω_k ∇ log w_k: it holds the θ-gradient of eq. 8, and, through the
    −log q(a_k|x) in log w_k, the −ω_k of ω_φ.
    """
    bound = multi_sample_bound(terms)
    signal = (bound.unsqueeze(1) - leave_one_out(terms.log_w)).detach()
    surrogate = bound + (signal * terms.log_q_a).sum(-1)
    return Estimate(bound, surrogate.mean(), terms)


def vimco(terms: BoundTerms) -> Estimate:
    """∇L ≈ Σ_k ω_k ∇ log w_k + (L − L_{−k}) ∇ log q(a_k|x), with L_{−k} from the mean of the others (eq. 8)."""
    return with_leave_one_out(terms, arithmetic_leave_one_out)


def vimco_geometric(terms: BoundTerms) -> Estimate:
    """Like `vimco`, but L_{−k} replaces w_k by the geometric mean of the others (Mnih and Rezende, 2016)."""
    return with_leave_one_out(terms, geometric_leave_one_out)


VIMCO = Estimator("vimco", vimco, "independent", "multi-sample", True, 2, "the paper's, eq. 8")
VIMCO_GEOMETRIC = Estimator(
    "vimco-geometric", vimco_geometric, "independent", "multi-sample", True, 2, "the original VIMCO"
)
