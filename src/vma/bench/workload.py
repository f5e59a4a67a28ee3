"""What is timed: an episode of glyphs, and a model that looks at it as a trained one does."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from vma.addressing import AddressDistribution
from vma.bounds import BoundTerms
from vma.data.glyphs import GlyphOptions, load_glyphs
from vma.data.samplers import EpisodeSampler
from vma.errors import InputError, unknown_name
from vma.memory import Memory
from vma.model import VMA
from vma.reads import HardGather, draw
from vma.runs.folder import Run
from vma.runs.presets import PRESETS
from vma.runs.processes import Processes
from vma.runs.settings import TrainSettings
from vma.training.episodes import RunEpisodes, for_model, generator
from vma.training.loop import Trainer
from vma.training.view import SilentView

CPU = torch.device("cpu")
CLASSES, DRAWERS = 8, 20
# Different addresses among K reads of a target, of a model trained on Omniglot: a row for each K, a column for each
# |M|, from results/trained-addresses.json.
TRAINED_READS, TRAINED_ITEMS = (4, 32, 1000), (4, 32, 2304)
TRAINED_PAIRS = ((1.54, 1.70, 2.96), (2.17, 2.90, 11.67), (2.92, 5.49, 63.74))


def trained_pairs(items: int, samples: int) -> float:
    """Different addresses among K reads of a target, of a trained model: powers of |M| and K through what is known.

    No more than three quarters of K and |M|, of which powers know nothing.
    """
    of_reads = [power_law(items, TRAINED_ITEMS, pairs) for pairs in TRAINED_PAIRS]
    return max(1.0, min(power_law(samples, TRAINED_READS, of_reads), 0.75 * min(items, samples)))


def power_law(x: int, xs: Sequence[int], ys: Sequence[float]) -> float:
    """y at x, where log y is linear in log x between three points, and goes on so beyond them."""
    i = 0 if x < xs[1] else 1
    return ys[i] * (ys[i + 1] / ys[i]) ** (math.log(x / xs[i]) / math.log(xs[i + 1] / xs[i]))


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


def glyph_sampler(items: int, targets: int) -> EpisodeSampler:
    """Episodes of `targets` targets of up to 8 classes, and a memory of `items`, of other classes too if large."""
    if items < 1 or targets < 1:
        raise InputError(f"An episode needs at least one target and one item, not {targets} and {items}.")
    with_targets = math.gcd(CLASSES, targets)
    each = targets // with_targets
    shots = 4 if items <= 1024 else DRAWERS - each
    if each + shots > DRAWERS or shots < 1:
        raise InputError(
            f"{targets} targets are {each} of a class, of which there are {DRAWERS}: ask for fewer."
        )
    classes = max(with_targets, math.ceil(items / shots))
    glyphs = load_glyphs("train", glyphs=GlyphOptions(classes=classes + 1, test_classes=1, drawers=DRAWERS))
    counts = [items // classes + (i < items % classes) for i in range(classes)]
    return EpisodeSampler(
        glyphs, classes=with_targets, targets=each, shots=counts, distractors=classes - with_targets
    )


def trainer(settings: TrainSettings, sampler: EpisodeSampler) -> Trainer:
    """A trainer of float32 weights that never move: every update of it is update 0."""
    here = Processes(0, 1, CPU)
    found = Trainer(
        settings, Run(Path("unused")), RunEpisodes(sampler, sampler, (26, 26)), here, SilentView()
    )
    for model in (found.phase.model, found.phase.average.model):
        model.float()
    for optimiser in found.phase.optimisers:
        for group in optimiser.param_groups:
            group["initial_lr"] = 0.0
    return found


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
        training = trainer(settings, glyph_sampler(items, targets))
        x, memory = for_model(training.streams.train.episode(0), CPU)
        model = training.phase.model
        assert isinstance(model, VMA)
        assert memory is not None
        sharpen_(model, x, memory, max(settings.samples, 2))  # a single read says nothing of sharpness
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
        self.trainer.update = 0
        self.trainer.step()

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


@torch.no_grad()
def sharpen_(model: VMA, x: Tensor, memory: Memory, samples: int) -> None:
    """Let K reads of q(a|x) differ as often as a trained model's, in place: an untrained model's all differ.

    The query network becomes a copy of the key network, both are centred on this memory, so that a target finds
    the items that look like it, and the queries are made as long as it takes.
    """
    addressing = model.addressing
    key, query = addressing.key, addressing.query
    assert query is not None
    last_layer(key).bias.sub_(addressing.embedded(memory).mean(0))
    query.load_state_dict(key.state_dict())
    scores = addressing.similarity.scores(addressing.keys(memory), query(x)).double()
    length = length_for_pairs(scores, samples, trained_pairs(len(memory), samples))
    for parameter in last_layer(query).parameters():
        parameter.mul_(length)


def last_layer(network: nn.Module) -> nn.Linear:
    """The last fully-connected layer."""
    return [layer for layer in network.modules() if isinstance(layer, nn.Linear)][-1]


def expected_pairs(q_a: AddressDistribution, samples: int) -> float:
    """Σ_a 1 − (1 − q(a|x))^K, the expected number of different addresses among K reads: mean over targets."""
    never = samples * torch.log1p(-q_a.log_probs.detach().exp().clamp(max=1))
    return float(-torch.expm1(never).sum(-1).mean())


def length_for_pairs(scores: Float[Tensor, "batch memory"], samples: int, pairs: float) -> float:
    """s for which K reads of softmax(s · scores) have `pairs` different addresses a target, by bisection."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        found = expected_pairs(AddressDistribution.of_scores(math.exp(middle) * scores), samples)
        low, high = (middle, high) if found > pairs else (low, middle)
    return math.exp(high)
