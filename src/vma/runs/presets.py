"""Every experiment of the paper as typed settings, derived from one another, with what the paper reports."""

from dataclasses import replace

from vma.config import ModelConfig, paper_mlp
from vma.runs.settings import (
    BlindSettings,
    DataSettings,
    EpisodeSettings,
    OptimiserSettings,
    SleepSettings,
    TrainSettings,
)
from vma.warps import strength

PAPER_MLP = paper_mlp()
PAPER_CONVOLUTIONAL = ModelConfig(maps=64)
SMALL_CONVOLUTIONAL = ModelConfig(height=28, width=28, maps=32, ink=0.08)

# --- MNIST ------------------------------------------------------------------------------------------------

RECALL = TrainSettings(
    model=PAPER_MLP,
    data=DataSettings("binarized-mnist"),
    episode=EpisodeSettings("recall", targets=32, shots=256),
    updates=150_000,
    log_every=200,
)
LEARNED = replace(RECALL, episode=EpisodeSettings("batch", targets=32), updates=300_000)


def recall(items: int) -> TrainSettings:
    """x drawn from a memory of `items` digits."""
    return replace(
        RECALL,
        episode=replace(RECALL.episode, shots=items),
        description=f"MNIST recall, |M| = {items}: the paper's NLL and KL_a approach log |M| (Figure 2A)",
    )


def learned(items: int) -> TrainSettings:
    """A learned memory of `items` vectors."""
    return replace(
        LEARNED,
        model=replace(PAPER_MLP, learned_items=items),
        address_after=300,
        description=f"MNIST, learned |M| = {items}: the paper's KL_a is 2.5 ± 0.3 nats (Figure 2B)",
    )


MNIST = {
    "mnist-recall": recall(256),
    **{f"mnist-recall-{items}": recall(items) for items in (64, 512, 1024)},
    **{f"mnist-learned-{items}": learned(items) for items in (64, 128, 256, 512, 1024)},
    "mnist-vae": replace(
        LEARNED,
        model=replace(PAPER_MLP, model="vae"),
        description="MNIST, no memory: the paper's NLL differs little from that with learned memory",
    ),
}

# --- Omniglot 28×28, learned memory -------------------------------------------------------------------------

OMNIGLOT28 = TrainSettings(
    model=replace(SMALL_CONVOLUTIONAL, learned_items=256, ink=0.13),
    data=DataSettings("omniglot28", stochastic_binarization=True),
    episode=EpisodeSettings("batch", targets=32),
    optimiser=OptimiserSettings(weight_decay=3e-4),
    updates=300_000,
    description="Omniglot 28×28, learned |M| = 256, 32 maps, L2 3e-4: the paper's test NLL is 103.6 (K = 5000)",
)
LEARNED_OMNIGLOT = {
    "omniglot28-learned-256": OMNIGLOT28,
    "omniglot28-learned-2048": replace(
        OMNIGLOT28,
        model=replace(OMNIGLOT28.model, learned_items=2048, maps=64),
        optimiser=OptimiserSettings(),
        description="Omniglot 28×28, learned |M| = 2048, no L2: the paper overfits, train NLL < 80, test > 150",
    ),
    "omniglot28-vae": replace(
        OMNIGLOT28,
        model=replace(OMNIGLOT28.model, learned_items=0, model="vae"),
        description="Omniglot 28×28, no memory: the paper's training NLL is above that with learned memory",
    ),
}

# --- Omniglot 26×26, few-shot -------------------------------------------------------------------------------

PAPER_NLL = {1: "75.1", 4: "between 75.1 and 69.1", 8: "between 75.1 and 69.1", 16: "69.1"}
FEW_SHOT = TrainSettings(
    model=PAPER_CONVOLUTIONAL, data=DataSettings("omniglot"), updates=300_000, log_every=50
)


def few_shot(shots: int) -> TrainSettings:
    """8 classes, 4 targets and `shots` items each."""
    return replace(
        FEW_SHOT,
        episode=replace(FEW_SHOT.episode, shots=shots),
        description=f"Omniglot 26×26, 8 classes × {shots} items, K = 4: the paper's test NLL is {PAPER_NLL[shots]}",
    )


FEW_SHOT_OMNIGLOT = {
    **{f"omniglot-fewshot-{shots}": few_shot(shots) for shots in (1, 4, 8, 16)},
    "omniglot-vae": replace(
        FEW_SHOT,
        model=replace(PAPER_CONVOLUTIONAL, model="vae"),
        description="Omniglot 26×26, no memory: the paper's test NLL is 90.8",
    ),
    "omniglot-soft": replace(
        FEW_SHOT,
        model=replace(PAPER_CONVOLUTIONAL, model="soft-attention"),
        # 16 of the 20 drawings are in memory, so an episode has 8 targets: four of them make a batch of 32.
        episode=EpisodeSettings(classes=2, targets=4, shots=16, episodes=4),
        description="Omniglot 26×26, soft attention, 2 classes × 16 items: the paper's test NLL is 73.4",
    ),
}

# --- the comparison with Generative Matching Networks --------------------------------------------------------

GMN_SPLIT = replace(
    FEW_SHOT,
    model=SMALL_CONVOLUTIONAL,
    data=DataSettings("omniglot-gmn"),
    optimiser=OptimiserSettings(weight_decay=3e-4),
    description="GMN's split, 28×28: the paper's test NLL is 86.5 with 1 shot of 1 class, 73.9 with 19 (Table 1)",
)
MATCHING_NETWORK = replace(
    GMN_SPLIT,
    model=replace(SMALL_CONVOLUTIONAL, model="gmn"),
    episode=EpisodeSettings("sequence", classes=2, targets=10, shots=20),
    samples=1,
    # As in its public code: 250 epochs of 121 updates at each of the rates 1e-3, 3e-4 and 1e-4.
    optimiser=OptimiserSettings(rate=1e-3, beta2=0.99, schedule="steps"),
    updates=90_750,
    description="GMN's split, Generative Matching Networks: in the paper 83.3 after 1 image, 45.8 after 19",
)
GMN = {
    "gmn-vma": GMN_SPLIT,
    "gmn-gmn": MATCHING_NETWORK,
    "gmn-published": replace(
        MATCHING_NETWORK,
        data=replace(GMN_SPLIT.data, size=28),  # the only size that its layers fit
        model=replace(
            MATCHING_NETWORK.model,
            style="published",
            hidden=(200,),
            latent=50,
            matching=200,
            similarity="inner-product",
        ),
        description=f"{MATCHING_NETWORK.description}; with the layers and sizes of its public code",
    ),
    "gmn-vae": replace(
        GMN_SPLIT,
        model=replace(SMALL_CONVOLUTIONAL, model="vae"),
        description="GMN's split, no memory: not in the paper",
    ),
}

# --- glyphs, which need no file -----------------------------------------------------------------------------

GLYPHS_DATA = DataSettings("glyphs", held_out=40)
GLYPHS = {
    name: replace(
        settings,
        data=GLYPHS_DATA,
        model=replace(settings.model, maps=32),
        description=f"invented characters, {what}: not in the paper",
    )
    for name, settings, what in (
        ("glyphs-fewshot", FEW_SHOT_OMNIGLOT["omniglot-fewshot-4"], "8 classes × 4 items"),
        ("glyphs-vae", FEW_SHOT_OMNIGLOT["omniglot-vae"], "no memory"),
        ("glyphs-soft", FEW_SHOT_OMNIGLOT["omniglot-soft"], "soft attention"),
    )
}

# --- small budgets ------------------------------------------------------------------------------------------

FAST_OPTIMISER = OptimiserSettings(
    name="muon", rate=2e-3, muon_rate=0.02, beta2=0.99, warmup=200, schedule="cosine", average=0.999
)


FAST_SLEEP = SleepSettings(share=0.3, classes=(8, 32))
FAST_WARPS = strength(1.0, turns=True)
FAST_UPDATES = 10_000  # awake


def fast(settings: TrainSettings) -> TrainSettings:
    """The same for a small budget: 32 maps, modern layers, Muon, DReG, warm-up and decay, averaged weights.

    A model that reads raw items sleeps afterwards, so that q(a|x) becomes as good as the rest of the model.
    """
    quick = replace(
        settings,
        model=replace(settings.model, maps=32, style="modern"),
        optimiser=replace(FAST_OPTIMISER, weight_decay=settings.optimiser.weight_decay),
        latent_gradient="dreg",
        updates=FAST_UPDATES,
        description=f"{settings.description}; here for a small budget, with 32 maps",
    )
    reads_raw_items = settings.model.model == "vma" and not settings.model.learned_items
    return with_sleep(quick) if reads_raw_items else quick


def with_sleep(settings: TrainSettings) -> TrainSettings:
    """The same number of updates awake, and then a sleep."""
    updates = round(settings.updates / (1 - FAST_SLEEP.share))
    return replace(settings, updates=updates, sleep=FAST_SLEEP, warps=FAST_WARPS)


def in_order(settings: TrainSettings) -> TrainSettings:
    """A fast preset whose pixels know their neighbours: blind at first, so that m and z are used at all."""
    return replace(
        settings,
        model=replace(settings.model, likelihood="reading-order"),
        blind=BlindSettings(start=1.0, end=0.0, until=0.5),
        description=f"{settings.description}, and ink in reading order, which is beyond the paper",
    )


def fast_perceptron(settings: TrainSettings, rate: float, updates: int) -> TrainSettings:
    """MNIST for a small budget: the paper's networks with a higher rate, warm-up, decay and averaged weights.

    Muon is not used: with it, z learned to explain the digits before the address could (lab notes).
    """
    return replace(
        settings,
        optimiser=replace(FAST_OPTIMISER, name="adam", rate=rate, beta2=0.999),
        updates=updates,
        description=f"{settings.description}; here for a small budget",
    )


def named() -> dict[str, TrainSettings]:
    """All presets by name, with the name also in their settings."""
    presets = {**MNIST, **LEARNED_OMNIGLOT, **FEW_SHOT_OMNIGLOT, **GMN, **GLYPHS}
    own_layers = [name for name in GMN if name != "gmn-published"]
    for name in [*LEARNED_OMNIGLOT, *FEW_SHOT_OMNIGLOT, *own_layers, *GLYPHS]:
        presets[f"{name}-fast"] = fast(presets[name])
    for name in [*LEARNED_OMNIGLOT, *FEW_SHOT_OMNIGLOT, "gmn-vma", *GLYPHS]:
        presets[f"{name}-in-order"] = in_order(presets[f"{name}-fast"])
    for name, settings in MNIST.items():
        rate, updates = (3e-3, 24_000) if settings.episode.kind == "recall" else (1e-3, 30_000)
        presets[f"{name}-fast"] = fast_perceptron(settings, rate, updates)
    return {name: replace(settings, preset=name) for name, settings in presets.items()}


PRESETS = named()
