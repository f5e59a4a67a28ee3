"""Gradient estimators (equation 8 and its alternatives): one file each, pure functions of `BoundTerms`."""

from vma.bounds import BoundTerms, elbo, multi_sample_bound
from vma.checks import check_samples
from vma.errors import unknown_name
from vma.estimators.dreg import doubly_reparameterise
from vma.estimators.estimate import Estimate, Estimator
from vma.parts import ESTIMATORS

__all__ = ["ESTIMATORS", "LATENT_GRADIENTS", "Estimate", "Estimator", "estimate", "find_estimator"]

LATENT_GRADIENTS = ("pathwise", "dreg")
OBJECTIVES = {"multi-sample": multi_sample_bound, "elbo": elbo}


def find_estimator(estimator: str | Estimator) -> Estimator:
    """The estimator of that name, or the given `Estimator` itself.

    >>> vma.estimators.find_estimator("vimco").objective
    'multi-sample'
    """
    return ESTIMATORS[estimator] if isinstance(estimator, str) else estimator


def estimate(
    terms: BoundTerms, estimator: str | Estimator = "vimco", latent_gradient: str = "pathwise"
) -> Estimate:
    """Bound and surrogate of an estimator; `terms` must have been sampled in the way that it asks for.

    Terms without an address, such as a VAE's, have no score. Every estimator is then the plain gradient of its
    objective, and the surrogate is the objective itself.

    >>> model = vma.build_vma(vma.paper_mlp())
    >>> terms = model.terms(torch.zeros(2, 28, 28), vma.Memory.of(torch.zeros(5, 28, 28)), samples=4)
    >>> vma.estimate(terms, "rws").loss.backward()

    Args:
        terms: The terms of the bound.
        estimator: One of `ESTIMATORS`, or an `Estimator` of your own.
        latent_gradient: The gradient for q(z|m,x): `pathwise` as in IWAE, or `dreg`.
    """
    chosen = find_estimator(estimator)
    if latent_gradient not in LATENT_GRADIENTS:
        raise unknown_name("latent gradient", latent_gradient, LATENT_GRADIENTS)
    if latent_gradient == "dreg":
        doubly_reparameterise(terms, chosen.objective)
    if not terms.has_address:
        bound = OBJECTIVES[chosen.objective](terms)
        return Estimate(bound, bound.mean(), terms)
    check_samples(terms.samples, chosen.least_samples, f"The estimator {chosen.name!r}")
    return chosen.estimate(terms)
