"""The terms of the bound, kept apart, and what is computed from them: equations 2 and 7, and exact sums over a."""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vma.addressing import Posterior, Prior


@dataclass(frozen=True)
class BoundTerms:
    """Log-probabilities of B targets at K reads each, from which every bound and gradient is made.

    The reads may be K independent draws from q(a|x), every address once, or K distinct ones. In each case,
    Σ_k exp(log_mass_k) f(a_k) is an unbiased estimate of E_q(a|x)[f(a)].

    >>> model = vma.build_vma(vma.paper_mlp())
    >>> x = torch.zeros(2, 28, 28)
    >>> terms = model.terms(x, vma.Memory.of(torch.zeros(5, 28, 28)), samples=3)
    >>> terms.log_w.shape, terms.samples
    (torch.Size([2, 3]), 3)

    Attributes:
        log_p_a: log p(a).
        log_q_a: log q(a|x).
        log_p_z: log p(z|m_a).
        log_q_z: log q(z|m_a,x).
        log_p_x: log p(x|m_a,z).
        log_mass: Log of the share of q(a|x) that a read stands for: −log K for independent draws.
        kl_z: KL(q(z|m_a,x) ‖ p(z|m_a)) in closed form, if known.
        p_a: The prior p(a), if known.
        q_a: The posterior q(a|x), or the proposal r(a|x) that replaces it, if known.
        z: The sampled z, through which gradients reach q(z|m,x); only `dreg` uses it.
        log_rest: Log of q(a|x)'s mass on addresses that were not read; only `without-replacement` needs it.
        hold_q_z: Whether the gradient of log q(z|m_a,x) flows through z alone, as `dreg` needs.
        has_address: Whether there is an address at all; without one, log p(a) = log q(a|x) = 0.
    """

    log_p_a: Float[Tensor, "batch samples"]
    log_q_a: Float[Tensor, "batch samples"]
    log_p_z: Float[Tensor, "batch samples"]
    log_q_z: Float[Tensor, "batch samples"]
    log_p_x: Float[Tensor, "batch samples"]
    log_mass: Float[Tensor, "batch samples"]
    kl_z: Float[Tensor, "batch samples"] | None = None
    p_a: Prior | None = None
    q_a: Posterior | None = None
    z: Float[Tensor, "batch samples latent"] | None = None
    log_rest: Float[Tensor, "batch"] | None = None
    hold_q_z: bool = False
    has_address: bool = True

    def join(self, other: "BoundTerms") -> "BoundTerms":
        """The reads of both, weighted by their numbers: Σ_k mass_k w_k is the weighted mean of both sums."""
        total = math.log(self.samples + other.samples)
        names = ("log_p_a", "log_q_a", "log_p_z", "log_q_z", "log_p_x")
        joined: dict[str, Any] = {
            name: torch.cat((getattr(self, name), getattr(other, name)), 1) for name in names
        }
        masses = [each.log_mass + math.log(each.samples) - total for each in (self, other)]
        kl_z = None if self.kl_z is None or other.kl_z is None else torch.cat((self.kl_z, other.kl_z), 1)
        return BoundTerms(**joined, log_mass=torch.cat(masses, 1), kl_z=kl_z, p_a=self.p_a, q_a=self.q_a,
                          has_address=self.has_address)  # fmt: skip

    def reads(self, part: slice) -> "BoundTerms":
        """Only the reads in `part`, each with its mass unchanged."""
        names = ("log_p_a", "log_q_a", "log_p_z", "log_q_z", "log_p_x", "log_mass", "kl_z", "z")
        values = {name: getattr(self, name) for name in names}
        chosen: dict[str, Any] = {
            name: None if value is None else value[:, part] for name, value in values.items()
        }
        return replace(self, **chosen)

    @property
    def samples(self) -> int:
        """K."""
        return self.log_p_x.shape[1]

    @property
    def log_w(self) -> Float[Tensor, "batch samples"]:
        """log w = log p(x,a,z) − log q(a,z|x)."""
        return self.log_p_a + self.log_p_z + self.log_p_x - self.log_q_a - self.log_q_z

    @property
    def weights(self) -> Float[Tensor, "batch samples"]:
        """ω_k = w_k / Σ w, the normalised importance weights of eq. 8; no gradient flows through them."""
        return (self.log_mass + self.log_w).detach().softmax(-1)


@dataclass(frozen=True)
class Decomposition:
    """ELBO = reconstruction − KL_a − KL_z, each per target and in nats.

    >>> zero, log_p_x = torch.zeros(1, 2), torch.tensor([[-3.0, -1.0]])
    >>> terms = vma.BoundTerms(zero, zero, zero, zero, log_p_x, zero - math.log(2))
    >>> vma.decomposition(terms).reconstruction
    tensor([-2.])
    """

    reconstruction: Float[Tensor, "batch"]
    kl_a: Float[Tensor, "batch"]
    kl_z: Float[Tensor, "batch"]


def expectation(terms: BoundTerms, values: Float[Tensor, "batch samples"]) -> Float[Tensor, "batch"]:
    """E_q(a|x)[values] ≈ Σ_k exp(log_mass_k) values_k."""
    return (terms.log_mass.exp() * values).sum(-1)


def elbo(terms: BoundTerms) -> Float[Tensor, "batch"]:
    """E_q(a,z|x)[log p(x,z,a) − log q(a,z|x)] (eq. 2), estimated from the reads.

    >>> zero, log_p_x = torch.zeros(1, 2), torch.tensor([[-3.0, -1.0]])
    >>> terms = vma.BoundTerms(zero, zero, zero, zero, log_p_x, zero - math.log(2))
    >>> vma.elbo(terms)
    tensor([-2.])
    """
    return expectation(terms, terms.log_w)


def multi_sample_bound(terms: BoundTerms) -> Float[Tensor, "batch"]:
    """L = log 1/K Σ_k w_k (eq. 7): a lower bound of log p(x) in expectation.

    With distinct reads it is log Σ_k mass_k w_k, and with every address read once it is exact in a:
    log Σ_a p(a) p(x,z|m_a) / q(z|m_a,x).

    >>> zero, log_p_x = torch.zeros(1, 2), torch.tensor([[-3.0, -1.0]])
    >>> terms = vma.BoundTerms(zero, zero, zero, zero, log_p_x, zero - math.log(2))
    >>> vma.multi_sample_bound(terms)
    tensor([-1.5662])
    """
    return torch.logsumexp(terms.log_mass + terms.log_w, dim=-1)


def decomposition(terms: BoundTerms) -> Decomposition:
    """Reconstruction E_q[log p(x|a,z)], KL(q(a|x)‖p(a)), and E_q(a|x)[KL(q(z|a,x)‖p(z|a))].

    Both divergences are exact where the terms contain closed forms, and sampled otherwise.

    >>> zero, log_p_x = torch.zeros(1, 2), torch.tensor([[-3.0, -1.0]])
    >>> terms = vma.BoundTerms(zero, zero, zero, zero, log_p_x, zero - math.log(2))
    >>> vma.decomposition(terms)
    Decomposition(reconstruction=tensor([-2.]), kl_a=tensor([0.]), kl_z=tensor([0.]))
    """
    if terms.p_a is not None and terms.q_a is not None:
        kl_a = terms.q_a.kl(terms.p_a)
    else:
        kl_a = expectation(terms, terms.log_q_a - terms.log_p_a)
    kl_z = terms.log_q_z - terms.log_p_z if terms.kl_z is None else terms.kl_z
    return Decomposition(expectation(terms, terms.log_p_x), kl_a, expectation(terms, kl_z))


def effective_sample_size(terms: BoundTerms) -> Float[Tensor, "batch"]:
    """1 / Σ_k ω_k²: how many of the K samples carry the bound.

    >>> zero, log_p_x = torch.zeros(1, 2), torch.tensor([[-3.0, -1.0]])
    >>> terms = vma.BoundTerms(zero, zero, zero, zero, log_p_x, zero - math.log(2))
    >>> vma.effective_sample_size(terms)
    tensor([1.2658])
    """
    return 1 / terms.weights.square().sum(-1)


def log_mean_exp(values: Float[Tensor, "*batch samples"]) -> Float[Tensor, "*batch"]:
    """log 1/K Σ_k exp(values_k)."""
    return torch.logsumexp(values, dim=-1) - math.log(values.shape[-1])
