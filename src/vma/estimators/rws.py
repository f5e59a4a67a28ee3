"""Reweighted wake-sleep (Bornschein and Bengio, 2015): the wake phase for q(a|x)."""

from vma.bounds import BoundTerms, multi_sample_bound
from vma.estimators.estimate import Estimate, Estimator


def rws(terms: BoundTerms) -> Estimate:
    """Σ_k ω_k ∇ log p(x,a_k,z_k) − ω_k ∇ log q(z_k|a_k,x) for θ, and Σ_k ω_k ∇ log q(a_k|x) for q(a|x).

    q(a|x) descends KL(p(a|x) ‖ q(a|x)), not the bound. As a gradient of the bound it is therefore biased; as a
    gradient of that divergence it is biased by the self-normalised weights, less so as K grows.
    """
    bound = multi_sample_bound(terms)
    # The derivative of L holds −ω_k ∇ log q(a_k|x); adding it twice turns the sign for q(a|x) alone.
    surrogate = bound + 2 * (terms.weights * terms.log_q_a).sum(-1)
    return Estimate(bound, surrogate.mean(), terms)


RWS = Estimator("rws", rws, "independent", "multi-sample", False, 1, "wake phase for q(a|x)")
