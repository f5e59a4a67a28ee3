"""Gradient estimators (equation 8 and its alternatives): one file each, pure functions of `BoundTerms`."""

from vma.bounds import BoundTerms
from vma.checks import check_samples
from vma.errors import unknown_name
from vma.estimators.dreg import doubly_reparameterise
from vma.estimators.estimate import Estimate, Estimator
from vma.estimators.exact import exact
from vma.estimators.gumbel import gumbel
from vma.estimators.reinforce import nvil, reinforce
from vma.estimators.rws import rws
from vma.estimators.vimco import vimco, vimco_geometric
from vma.estimators.without_replacement import without_replacement

__all__ = ["ESTIMATORS", "LATENT_GRADIENTS", "Estimate", "Estimator", "estimate", "find_estimator"]

ESTIMATORS = {
    "vimco": Estimator(vimco, "independent", "multi-sample", True, 2, "the paper's, eq. 8"),
    "vimco-geometric": Estimator(
        vimco_geometric, "independent", "multi-sample", True, 2, "the original VIMCO"
    ),
    "exact": Estimator(exact, "all", "elbo", True, 1, "all addresses enumerated"),
    "rws": Estimator(rws, "independent", "multi-sample", False, 1, "wake phase for q(a|x)"),
    "reinforce": Estimator(
        reinforce, "independent", "elbo", True, 2, "score function, leave-one-out baseline"
    ),
    "nvil": Estimator(nvil, "independent", "elbo", False, 2, "reinforce with normalised signal"),
    "gumbel": Estimator(
        gumbel, "straight-through", "multi-sample", False, 1, "straight-through Gumbel-softmax"
    ),
    "without-replacement": Estimator(
        without_replacement, "without-replacement", "elbo", True, 2, "K distinct addresses"
    ),
}
LATENT_GRADIENTS = ("pathwise", "dreg")


def find_estimator(name: str) -> Estimator:
    """The estimator of that name."""
    if name not in ESTIMATORS:
        raise unknown_name("estimator", name, ESTIMATORS)
    return ESTIMATORS[name]


def estimate(terms: BoundTerms, name: str = "vimco", latent_gradient: str = "pathwise") -> Estimate:
    """Bound and surrogate of the named estimator; `terms` must have been sampled as it asks.

    Args:
        terms: The terms of the bound.
        name: One of `ESTIMATORS`.
        latent_gradient: How q(z|m,x) is reached: `pathwise` as in IWAE, or `dreg`.
    """
    chosen = find_estimator(name)
    check_samples(terms.samples, chosen.least_samples, f"The estimator {name!r}")
    if latent_gradient not in LATENT_GRADIENTS:
        raise unknown_name("latent gradient", latent_gradient, LATENT_GRADIENTS)
    if latent_gradient == "dreg":
        doubly_reparameterise(terms, chosen.objective)
    return chosen.estimate(terms)
