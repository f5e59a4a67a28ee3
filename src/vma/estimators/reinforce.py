"""The score-function estimator of the ELBO with a leave-one-out baseline, plain and as in NVIL."""

import torch
from jaxtyping import Float
from torch import Tensor

from vma.bounds import BoundTerms, elbo
from vma.estimators.estimate import Estimate, Estimator


def centred_signal(log_w: Float[Tensor, "batch samples"]) -> Float[Tensor, "batch samples"]:
    """log w_k − 1/(K−1) Σ_{k'≠k} log w_{k'}, without gradient."""
    samples = log_w.shape[1]
    return ((log_w - log_w.mean(-1, keepdim=True)) * samples / (samples - 1)).detach()


def with_signal(terms: BoundTerms, signal: Float[Tensor, "batch samples"]) -> Estimate:
    """1/K Σ_k [log w_k + signal_k log q(a_k|x)]."""
    bound = elbo(terms)
    surrogate = bound + (signal * terms.log_q_a).mean(-1)
    return Estimate(bound, surrogate.mean(), terms)


def reinforce(terms: BoundTerms) -> Estimate:
    """1/K Σ_k ∇ log w_k + (log w_k − mean of the others) ∇ log q(a_k|x): unbiased for the ELBO."""
    return with_signal(terms, centred_signal(terms.log_w))


def nvil(terms: BoundTerms) -> Estimate:
    """Like `reinforce`, with the signal divided by max(1, its standard deviation over the minibatch).

    This is the variance normalisation of NVIL (Mnih and Gregor, 2014), with the leave-one-out baseline in place of
    its learned one. The gradient of q(a|x) keeps its direction on average but shrinks, so it is biased.
    """
    signal = centred_signal(terms.log_w)
    deviation = signal.square().mean().sqrt()
    return with_signal(terms, signal / torch.clamp(deviation, min=1.0))


REINFORCE = Estimator(
    "reinforce", reinforce, "independent", "elbo", True, 2, "score function, leave-one-out baseline"
)
NVIL = Estimator("nvil", nvil, "independent", "elbo", False, 2, "reinforce with normalised signal")
