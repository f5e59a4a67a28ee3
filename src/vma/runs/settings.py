"""The settings of a run: model, data, episodes, optimiser and their numbers, typed and frozen."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from vma.checks import check_samples
from vma.config import ModelConfig
from vma.data.picture import FolderOptions
from vma.errors import InputError, unknown_name
from vma.estimators import LATENT_GRADIENTS, find_estimator
from vma.ranges import (
    Count,
    Minutes,
    Number,
    Pixels,
    Rate,
    Seed,
    Share,
    ShareBelowOne,
    Threads,
    Weight,
    Within,
    check_ranges,
)
from vma.warps import WarpSettings

NEVER = 10_000_000  # updates: more than a time budget ever allows


@dataclass(frozen=True)
class DataSettings:
    """Which images a run is trained on; test classes are never touched.

    Attributes:
        name: A dataset of `vma data list`.
        split: How its classes are divided; None for the dataset's default.
        size: Side of the images; None for the dataset's default.
        held_out: Training classes kept apart for validation if the data has no validation part.
        stochastic_binarization: Draw pixels anew at each step, 1 with the grey level as probability, else 0.
        folder: How the images of the dataset `folder` are read.
    """

    name: str = "omniglot"
    split: str | None = None
    size: Pixels | None = None
    held_out: Number = 60
    stochastic_binarization: bool = False
    folder: FolderOptions = field(default_factory=FolderOptions)

    def __post_init__(self) -> None:
        check_ranges(self, "data.")


@dataclass(frozen=True)
class EpisodeSettings:
    """What one update is computed from.

    Attributes:
        kind: `few-shot` (targets and memory items of the same classes), `recall` (targets from the memory),
            `batch` (targets alone: learned memory, VAE), or `sequence` (each image given those before it: GMN).
        classes: Classes of a few-shot episode, or of a sequence.
        targets: Targets of each class; of the whole episode for `recall` and `batch`; length of a sequence.
        shots: Memory items of each class; |M| for `recall`; number of sequences; unused for `batch`.
        episodes: Episodes of one update, each with its own memory; their gradients are averaged.
    """

    kind: Literal["few-shot", "recall", "batch", "sequence"] = "few-shot"
    classes: Count = 8
    targets: Count = 4
    shots: Count = 4
    episodes: Count = 1

    def __post_init__(self) -> None:
        check_ranges(self, "episode.")


@dataclass(frozen=True)
class OptimiserSettings:
    """How the parameters move.

    Attributes:
        name: `adam`; `muon` for all matrices, or `muon-kernels` for kernels of convolutions, and Adam for the rest.
        rate: Learning rate of Adam.
        muon_rate: Learning rate of Muon.
        beta2: Adam's second decay.
        weight_decay: λ, on all parameters except a learned memory. Adam adds λθ to the gradient, as for an L2
            penalty; Muon, which ignores a gradient's size, multiplies θ by 1 − rate · λ at each update.
        warmup: Updates over which the rate rises from zero.
        schedule: `constant`; `cosine`, down to `floor` times the rate at the end of the updates or minutes; or
            `steps`, a third of the run each with 1, 0.3 and 0.1 times the rate.
        floor: See `schedule`.
        clip: Largest norm of a gradient; 0 for no limit.
        average: Decay of the moving average of the weights that is validated and saved; 0 for none.
    """

    name: Literal["adam", "muon", "muon-kernels"] = "adam"
    rate: Rate = 3e-4
    muon_rate: Rate = 0.02
    beta2: ShareBelowOne = 0.999
    weight_decay: Weight = 0.0
    warmup: Number = 0
    schedule: Literal["constant", "cosine", "steps"] = "constant"
    floor: Share = 0.02
    clip: Weight = 0.0
    average: ShareBelowOne = 0.0

    def __post_init__(self) -> None:
        check_ranges(self, "optimiser.")


@dataclass(frozen=True)
class SleepSettings:
    """Sleep: q(a|x) learns from the model's own dreams, whose addresses are known; all else is held fixed.

    Attributes:
        share: Share of the run, of its updates or minutes, that is spent asleep at the end; 0 for none.
        matching: The matching networks when sleep begins: `kept` as they are, `anew` with new weights, or `tied`,
            one new network for both keys and queries.
        dreams: Dreams of one update.
        binary: Dream in black and white; otherwise a dream holds the probability of ink of every pixel.
        classes: Classes in the memories to dream from, one number for each update in turn; empty for the number
            in the episodes.
        shots: Items of each class in these memories; 0 for the number in the episodes.
        rate: Learning rate of Adam asleep; the schedule and everything else are the optimiser's.
        muon_rate: Learning rate of Muon asleep.
        beside: Weight of the same objective while awake, beside the estimator's; 0 for none.
        begin: Share of the wake updates after which `beside` applies.
    """

    share: ShareBelowOne = 0.0
    matching: Literal["kept", "anew", "tied"] = "tied"
    dreams: Count = 64
    binary: bool = True
    classes: tuple[Count, ...] = ()
    shots: Number = 0
    rate: Rate = 2e-3
    muon_rate: Rate = 0.02
    beside: Weight = 0.0
    begin: ShareBelowOne = 0.0

    def __post_init__(self) -> None:
        check_ranges(self, "sleep.")

    @property
    def any(self) -> bool:
        """Whether the run dreams at all."""
        return self.share > 0 or self.beside > 0


@dataclass(frozen=True)
class BlindSettings:
    """Blind targets: their pixels do not see those before them, so that m and z have to explain everything.

    Pixels that see their neighbours can do without m and z. A run therefore begins with blind targets and ends
    with seeing ones: b = start + (end − start) · min(1, done / until) is the share of blind targets when a share
    `done` of the part awake is done.

    Attributes:
        start: Share of blind targets at the start.
        end: Share of blind targets at the end.
        until: Share of the part awake after which the share is `end`.
    """

    start: Share = 0.0
    end: Share = 0.0
    until: Annotated[float, Within(0.0, 1.0, above=True)] = 1.0

    def __post_init__(self) -> None:
        check_ranges(self, "blind.")

    @property
    def any(self) -> bool:
        """Whether any target is ever blind."""
        return max(self.start, self.end) > 0

    def share(self, done: float) -> float:
        """The share of blind targets when a share `done` of the part awake is done."""
        return self.start + (self.end - self.start) * min(1.0, done / self.until)


@dataclass(frozen=True)
class SearchSettings:
    """One memory for the whole run, of thousands of classes, of which a target reads what a search proposes.

    The search and p(a) go by keys that were made with the weights of the last refresh; scores of what is found are
    made with those of now. Targets are other images of the classes in memory, `episode.classes` times
    `episode.targets` in each update.

    Attributes:
        candidates: Items that a search finds for each target; 0 to draw a memory for each episode, and look at all.
        classes: Classes in memory, with `episode.shots` items each; 0 for all that there are to train on.
        refresh: Updates after which all keys are made anew.
        epsilon: Share of the reads that go anywhere in memory, by p(a).
    """

    candidates: Number = 0
    classes: Number = 0
    refresh: Count = 100
    epsilon: Share = 0.05

    def __post_init__(self) -> None:
        check_ranges(self, "search.")


@dataclass(frozen=True)
class TrainSettings:
    """All settings of a run; they are saved with it, and it can be repeated from them.

    Attributes:
        preset: Name of the preset it was derived from.
        description: One line on what the paper does and reports.
        model: The model.
        start: A trained model to begin with, in place of `model` and random weights: the name of one in the box, a
            file, or the folder of a run.
        data: The images.
        episode: What one update is computed from.
        optimiser: How the parameters move.
        sleep: How q(a|x) learns from dreams.
        warps: How images are warped for the matching networks in training: asleep and, if `warp_awake`, awake.
        warp_awake: Whether the matching networks see warped images while awake too.
        blind: How many targets are blind, for the likelihood `reading-order`.
        search: A memory of thousands of classes that is searched, instead of a small one for each episode.
        address_after: Updates after which q(a|x) and p(a) begin to learn. A learned memory needs a delay: until
            the decoder knows the mean image, the item most like that is best for every x, and a few items take all.
        samples: K.
        estimator: Gradient estimator.
        latent_gradient: `pathwise` or `dreg`.
        updates: Number of updates.
        minutes: Time budget; 0 for none. The run ends at whichever of updates and minutes comes first.
        least_updates: Updates that are made even when the minutes are over.
        seed: Seed of everything random.
        threads: Threads of torch; 0 for torch's own choice.
        precision: `float32`, or mixed precision with `bfloat16` if the device has it.
        log_every: Updates between two lines of metrics.
        validate_every: Updates between two validations.
        checkpoint_every: Updates between two checkpoints.
        checkpoint_minutes: Minutes after which a checkpoint is due in any case.
        picture_minutes: Minutes between two drawings of curves and samples; 0 for none.
    """

    preset: str = ""
    description: str = ""
    model: ModelConfig = field(default_factory=ModelConfig)
    start: str = ""
    data: DataSettings = field(default_factory=DataSettings)
    episode: EpisodeSettings = field(default_factory=EpisodeSettings)
    optimiser: OptimiserSettings = field(default_factory=OptimiserSettings)
    sleep: SleepSettings = field(default_factory=SleepSettings)
    warps: WarpSettings = field(default_factory=WarpSettings)
    warp_awake: bool = False
    blind: BlindSettings = field(default_factory=BlindSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    address_after: Number = 0
    samples: Count = 4
    estimator: str = "vimco"
    latent_gradient: str = "pathwise"
    updates: Count = 100_000
    minutes: Minutes = 0.0
    least_updates: Number = 0
    seed: Seed = 0
    threads: Threads = 0
    precision: Literal["float32", "bfloat16"] = "float32"
    log_every: Count = 50
    validate_every: Count = 1000
    checkpoint_every: Count = 2000
    checkpoint_minutes: Annotated[float, Within(0.0, 1e8, above=True)] = 5.0
    picture_minutes: Minutes = 5.0

    def __post_init__(self) -> None:
        check_ranges(self)
        chosen = find_estimator(self.estimator)
        if self.model.model == "vma":
            check_samples(self.samples, chosen.least_samples, f"The estimator {self.estimator!r}")
        if self.episode.kind == "sequence" and self.model.model != "gmn":
            raise InputError("Only the model 'gmn' is trained on sequences: choose another episode.kind.")
        if self.latent_gradient not in LATENT_GRADIENTS:
            raise unknown_name("latent gradient", self.latent_gradient, LATENT_GRADIENTS)
        if self.model.model != "vma" and (self.sleep.any or self.warp_awake):
            raise InputError(f"The model {self.model.model!r} has no address to dream of: leave sleep out.")
        if self.model.model != "vma" and self.address_after:
            raise InputError(f"The model {self.model.model!r} has no address: leave address_after out.")
        if self.model.likelihood != "reading-order" and self.blind.any:
            raise InputError(
                f"The pixels of the likelihood {self.model.likelihood!r} see no others, so no target is blind: "
                "leave blind out, or use 'reading-order'."
            )

        if self.search.candidates:
            self.check_search()

    def check_search(self) -> None:
        """Refuse what a memory that is searched cannot be trained with."""
        raw = self.model.model == "vma" and not self.model.learned_items
        if not raw or self.episode.kind != "few-shot":
            raise InputError("Only a vma model with few-shot episodes searches its memory: leave search out.")
        if find_estimator(self.estimator).sampling != "independent":
            raise InputError(
                f"The estimator {self.estimator!r} goes through all of memory: search with another, such as vimco."
            )
        if self.sleep.beside:
            raise InputError("Dreams beside need a small memory: leave sleep.beside out, or search.")

    @property
    def length(self) -> int:
        """Length of the sequences that targets come in; 0 where they come one by one."""
        return self.episode.targets if self.episode.kind == "sequence" else 0
