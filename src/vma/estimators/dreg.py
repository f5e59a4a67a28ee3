"""Doubly reparameterised gradients for q(z|m,x) (Tucker et al., 2019)."""

from jaxtyping import Float
from torch import Tensor

from vma.bounds import BoundTerms
from vma.errors import InputError


def doubly_reparameterise(terms: BoundTerms, objective: str) -> None:
    """∇_φ L = Σ_k ω_k² (∂ log w_k / ∂z_k) (∂z_k / ∂φ) instead of the pathwise Σ_k ω_k ∇_φ log w_k.

    The terms must hold q(z|m,x) fixed in log q(z|m,x), so that φ is reached through z alone, with weight ω_k; a
    hook on z multiplies by the second ω_k. The ELBO has constant weights, so nothing is multiplied: this is the
    "sticking the landing" gradient.
    """
    if terms.z is None or not terms.z.requires_grad:
        return
    if not terms.hold_q_z:
        raise InputError("`dreg` needs terms that hold q(z|m,x) fixed: make them with hold_q_z=True.")
    if terms.z._backward_hooks:
        raise InputError("These terms have been given to `dreg` before: make new ones for another estimate.")
    if objective != "multi-sample":
        return
    weights = terms.weights.unsqueeze(-1)

    def multiply(gradient: Float[Tensor, "batch samples latent"]) -> Float[Tensor, "batch samples latent"]:
        return gradient * weights

    terms.z.register_hook(multiply)
