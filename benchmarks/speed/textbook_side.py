"""The textbook's side of a comparison: its updates, and a check that they compute what ours compute."""

import torch
from torch import Tensor, nn

from benchmarks import textbook
from benchmarks.speed.workload import Workload
from vma.bounds import BoundTerms
from vma.estimators import estimate
from vma.training.optimiser import build_optimisers, set_rates

CHECKED_TARGETS = 4
TOLERANCE, ROUNDED = 1e-8, 1e-5  # relative, in float64 and in float32


class TextbookSide:
    """The textbook implementation of a workload's model, with the same weights, reads and optimiser.

    Args:
        work: The workload.
        per_target: Give every target a memory of its own, with equal items, as public code does.
        layout: How images lie in memory: torch's default, or channels_last.
    """

    def __init__(
        self,
        work: Workload,
        *,
        per_target: bool = False,
        layout: torch.memory_format = torch.contiguous_format,
    ) -> None:
        self.work = work
        self.book = textbook.textbook_of(work.model).to(memory_format=layout)
        settings = work.trainer.settings
        self.estimator, self.latent_gradient = settings.estimator, settings.latent_gradient
        self.optimisers = build_optimisers(self.book, settings.optimiser)
        set_rates(self.optimisers, 0.0)
        items = work.memory.items
        self.items = items.expand(len(work.x), *items.shape) if per_target else items

    def terms(self) -> BoundTerms:
        """The terms of the bound at the workload's reads."""
        work = self.work
        return self.book(work.x, self.items, work.addresses, work.noise, self.latent_gradient == "dreg")

    def update(self) -> None:
        """One update: bound, gradient, its norm, optimiser."""
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=True)
        estimate(self.terms(), self.estimator, self.latent_gradient).loss.backward()
        nn.utils.clip_grad_norm_(self.book.parameters(), float("inf"))
        for optimiser in self.optimisers:
            optimiser.step()


def check_equal(work: Workload, *, per_target: bool = False) -> None:
    """Raise an error unless both sides compute the same: in float64 log w and all gradients, in float32 log w."""
    small = work.in_float64(CHECKED_TARGETS)
    side = TextbookSide(small, per_target=per_target)
    ours, theirs = small.terms(), side.terms()
    difference = max(
        largest_difference(ours, theirs),
        gradient_difference(small.model, side.book, loss_of(side, ours), loss_of(side, theirs)),
    )
    with torch.no_grad():
        rounded = largest_difference(work.terms(), TextbookSide(work, per_target=per_target).terms())
    if not (difference < TOLERANCE and rounded < ROUNDED):
        raise AssertionError(
            f"The sides differ by {difference:.1e} in float64 and by {rounded:.1e} in float32: they do not compute "
            "the same thing."
        )


def largest_difference(ours: BoundTerms, theirs: BoundTerms) -> float:
    """The largest difference of log w, relative to the largest log w."""
    ours_w, theirs_w = ours.log_w.detach(), theirs.log_w.detach()
    return float((ours_w - theirs_w).abs().max() / theirs_w.abs().max())


def loss_of(side: TextbookSide, terms: BoundTerms) -> Tensor:
    """What a side's update differentiates."""
    return estimate(terms, side.estimator, side.latent_gradient).loss


def gradient_difference(model: nn.Module, book: textbook.Textbook, ours: Tensor, theirs: Tensor) -> float:
    """The largest difference of a layer's gradient, relative to the largest gradient of all layers."""
    ours.backward()
    theirs.backward()
    found = textbook.weights_of({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    expected = {name: p.grad for name, p in book.named_parameters() if p.grad is not None}
    assert found.keys() == expected.keys()
    largest = max(float(g.abs().max()) for g in expected.values())
    return max(float((found[name] - g).abs().max()) for name, g in expected.items()) / largest
