"""What is timed: an episode of glyphs, and a model that looks at it as a trained one does."""

import copy
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.bounds import BoundTerms
from vma.errors import InputError, unknown_name
from vma.memory import Memory
from vma.model import VMA
from vma.reads import HardGather, draw
from vma.reproduce.update_times import CPU, first_update, hard_trainer
from vma.runs.presets import PRESETS
from vma.runs.settings import TrainSettings
from vma.training.episodes import for_model, generator
from vma.training.loop import Trainer


def few_shot_preset(name: str, maps: int) -> TrainSettings:
    """The settings of a preset, with another number of maps."""
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    settings = PRESETS[name]
    if settings.episode.kind != "few-shot" or settings.model.learned_items:
        raise InputError(f"{name!r} has no episodes with a memory: choose a few-shot preset.")
    if settings.model.likelihood != "bernoulli":
        raise InputError(
            f"{name!r} has the likelihood {settings.model.likelihood!r}, which the textbook does not know: choose "
            "a preset with the paper's, beside which it is timed too."
        )
    return replace(settings, model=replace(settings.model, maps=maps))


@dataclass(frozen=True)
class Workload:
    """An episode, the reads that a sharp q(a|x) makes of it, and the noise of z.

    Attributes:
        trainer: Makes updates, always the same one.
        model: Its model, or a copy.
        x: Targets.
        memory: M.
        addresses: a, as `VMA.terms` draws them from `source()`.
        noise: ε of z, likewise.
    """

    trainer: Trainer
    model: VMA
    x: Float[Tensor, "batch *image"]
    memory: Memory
    addresses: Int[Tensor, "batch samples"]
    noise: Float[Tensor, "batch samples latent"]

    @staticmethod
    def of(settings: TrainSettings, items: int, targets: int, samples: int = 0) -> "Workload":
        """The first update of `settings` on glyphs, with another K if `samples` are given."""
        settings = replace(settings, samples=samples or settings.samples)
        training = hard_trainer(settings, items, targets)
        x, memory = for_model(training.episodes.train.episode(0), CPU)
        model = training.phase.model
        assert isinstance(model, VMA)
        assert isinstance(memory, Memory)
        return Workload.drawn(training, model, x, memory)

    @staticmethod
    def drawn(training: Trainer, model: VMA, x: Tensor, memory: Memory) -> "Workload":
        """The workload of the reads that the trainer's update 0 draws."""
        addresses, noise = draws(model, x, memory, training.settings.samples, source(training))
        return Workload(training, model, x, memory, addresses, noise)

    def terms(self) -> BoundTerms:
        """The terms of the bound, as the trainer's update computes them."""
        settings = self.trainer.settings
        return self.model.terms(
            self.x,
            self.memory,
            settings.samples,
            hold_q_z=settings.latent_gradient == "dreg",
            generator=source(self.trainer),
        )

    def update(self) -> None:
        """One update as `vma train` makes it: episode, bound, gradient, its norm, optimiser, metrics."""
        first_update(self.trainer)

    def counts(self) -> dict[str, int]:
        """How many reads there are, and how many of them differ."""
        rows = HardGather.of(self.addresses)
        return {
            "reads": self.addresses.numel(),
            "unique_pairs": len(rows.pair_item),
            "unique_items": len(rows.items),
        }

    def in_float64(self, targets: int) -> "Workload":
        """A copy in float64 with the first few targets, for comparisons that rounding does not blur."""
        model = copy.deepcopy(self.model).double()
        memory = replace(self.memory, items=self.memory.items.double())
        return Workload.drawn(self.trainer, model, self.x[:targets].double(), memory)


def source(training: Trainer) -> torch.Generator:
    """The randomness of update 0."""
    return generator(training.settings.seed, 0, 0, CPU)


def draws(
    model: VMA, x: Tensor, memory: Memory, samples: int, randomness: torch.Generator
) -> tuple[Int[Tensor, "batch samples"], Float[Tensor, "batch samples latent"]]:
    """Addresses and noise in the order in which `VMA.terms` draws them."""
    with torch.no_grad():
        addresses = draw(model.posterior(x, memory), samples, memory, "independent", randomness).addresses
    shape = (*addresses.shape, model.config.latent)
    return addresses, torch.randn(shape, dtype=x.dtype, generator=randomness)
