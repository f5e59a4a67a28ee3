"""What an estimator is: a pure function from `BoundTerms` to an `Estimate`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from vma.bounds import BoundTerms
from vma.errors import unknown_name


@dataclass(frozen=True)
class Estimate:
    """The result of an estimator: the bound to report, and the surrogate to differentiate.

    >>> model = vma.build_vma(vma.paper_mlp())
    >>> estimate = model(torch.zeros(2, 28, 28), vma.Memory.of(torch.zeros(5, 28, 28)))
    >>> estimate.loss.backward()
    >>> estimate.bound.shape
    torch.Size([2])

    Attributes:
        bound: The bound on log p(x) of each target.
        surrogate: A scalar to be maximised; its gradient estimates the gradient of the mean objective.
        terms: The terms that it was computed from.
    """

    bound: Float[Tensor, "batch"]
    surrogate: Float[Tensor, ""]
    terms: BoundTerms

    @property
    def loss(self) -> Float[Tensor, ""]:
        """−surrogate, to be minimised."""
        return -self.surrogate


@dataclass(frozen=True)
class Estimator:
    """A gradient estimator.

    >>> vma.ESTIMATORS["vimco"].objective, vma.ESTIMATORS["vimco"].unbiased
    ('multi-sample', True)

    Attributes:
        name: Its name.
        estimate: The pure function from terms to an `Estimate`.
        sampling: How the reads are drawn, by a name of `vma.reads.SAMPLINGS`.
        objective: What the gradient ascends: `multi-sample` (eq. 7) or `elbo` (eq. 2).
        unbiased: Whether the expected gradient is that of the objective.
        least_samples: The smallest K that it works with.
        summary: One line for a table.
    """

    name: str
    estimate: Callable[[BoundTerms], Estimate]
    sampling: str = "independent"
    objective: Literal["multi-sample", "elbo"] = "multi-sample"
    unbiased: bool = False
    least_samples: int = 2
    summary: str = ""

    def __post_init__(self) -> None:
        if self.objective not in ("multi-sample", "elbo"):
            raise unknown_name("objective", self.objective, ("multi-sample", "elbo"))
