"""Straight-through Gumbel-softmax (Jang et al., 2017; Maddison et al., 2017)."""

from vma.bounds import BoundTerms, multi_sample_bound
from vma.estimators.estimate import Estimate, Estimator


def gumbel(terms: BoundTerms) -> Estimate:
    """∇L along straight-through reads: forward m_a of a sampled a, backward Σ_a softmax((log q + g)/τ)_a m_a.

    The reads are exact samples of q(a|x), so the bound is right; the gradient of q(a|x) is that of a
    relaxation, and biased. Features of all of M are needed to differentiate a read.
    """
    bound = multi_sample_bound(terms)
    return Estimate(bound, bound.mean(), terms)


GUMBEL = Estimator(
    "gumbel", gumbel, "straight-through", "multi-sample", False, 1, "straight-through Gumbel-softmax"
)
