"""What the report says about both models, measured by `vma.evaluation` on classes that neither has seen."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from vma.evaluation import ClassifyOptions, NllOptions, TrainedRun, classify, comparison
from vma.evaluation.resumable import Show
from vma.evaluation.statistics import Mean, Share
from vma.generative_model import GenerativeModel

CLASSES, TARGETS, SHOTS = 8, 4, 4  # of an episode, as in training
WAYS = 5


@dataclass(frozen=True)
class Training:
    """How the two models were trained.

    Attributes:
        updates: Updates of the model with memory.
        vae_updates: Updates of the VAE.
        seconds: Time that both took together.
        classes: Number of training classes; the models are measured on others.
        threads: Threads used for training.
        load: Load of the machine by other processes at the beginning.
        cores: Cores of the machine.
    """

    updates: int
    vae_updates: int
    seconds: float
    classes: int
    threads: int = 0
    load: float = 0.0
    cores: int = 0


@dataclass(frozen=True)
class Findings:
    """All numbers of a report, in nats per image unless another unit is named.

    Attributes:
        nll_vma: −L of the K-sample bound (eq. 7): an upper bound of −log p(x|M).
        nll_vae: The same for the VAE, on the same targets.
        gain: nll_vae − nll_vma, target by target; positive where the memory helps.
        kl_a: KL(q(a|x) ‖ p(a)).
        kl_z: E_q(a|x)[KL(q(z|m_a,x) ‖ p(z|m_a))].
        reconstruction: E_q[log p(x|m_a,z)].
        log_memory: log |M|, the cost of naming one item under a flat p(a).
        log_classes: log C, the cost of naming one class under a flat p(a).
        accuracy: Share of targets recognised among `ways` classes, with one item of each in memory.
        ways: Number of classes to choose from; chance is 1 / ways.
        samples: K.
        episodes: Number of episodes.
        targets: Number of targets in all of them.
        memory: |M| of an episode.
        classes: C, the classes of an episode.
        unseen_classes: Number of classes that they are drawn from.
        pixels: Pixels of an image.
        weights_vma: Number of weights.
        weights_vae: Number of weights.
        seed: Decides episodes and samples.
        dataset: Name and part of the data.
        provenance: Where the data comes from.
        training: How the models were trained.
    """

    nll_vma: Mean
    nll_vae: Mean
    gain: Mean
    kl_a: Mean
    kl_z: Mean
    reconstruction: Mean
    log_memory: float
    log_classes: float
    accuracy: Share
    ways: int
    samples: int
    episodes: int
    targets: int
    memory: int
    classes: int
    unseen_classes: int
    pixels: int
    weights_vma: int
    weights_vae: int
    seed: int
    dataset: str
    provenance: str
    training: Training


def silent(what: str) -> Show | None:
    """Show nothing."""
    return None


def measure(
    with_memory: TrainedRun,
    vae: TrainedRun,
    training: Training,
    *,
    episodes: int = 12,
    samples: int = 64,
    trials: int = 1000,
    seed: int = 0,
    show: Callable[[str], Show | None] = silent,
) -> Findings:
    """All numbers of the report, for a model with memory and a VAE, on the same episodes of unseen classes.

    Args:
        with_memory: The model with memory.
        vae: The VAE that it is compared with.
        training: How both were trained, to be passed on to the report.
        episodes: Episodes of 8 classes × 4 targets × 4 items, disjoint.
        samples: K, the same for both models.
        trials: Number of 5-way 1-shot tasks.
        seed: Decides episodes and samples.
        show: Returns, for a piece of work, a function that shows how many of its parts are done.
    """
    options = NllOptions(
        episodes=episodes, classes=CLASSES, targets=TARGETS, shots=SHOTS, samples=samples, seed=seed
    )
    both = comparison({"vma": with_memory, "vae": vae}, options).results(show("likelihood of new images"))
    tasks = ClassifyOptions(tasks=((WAYS, 1),), trials=trials, seed=seed)
    found = classify(with_memory, tasks).results(show("recognition of new classes"))
    ours, dataset, memory = both.models["vma"], with_memory.dataset, CLASSES * SHOTS
    return Findings(
        nll_vma=ours.nll,
        nll_vae=both.models["vae"].nll,
        gain=both.models["vae"].above_first,
        kl_a=ours.kl_a,
        kl_z=ours.kl_z,
        reconstruction=ours.reconstruction,
        log_memory=math.log(memory),
        log_classes=math.log(CLASSES),
        accuracy=found.tasks[0].by_address,
        ways=WAYS,
        samples=samples,
        episodes=episodes,
        targets=both.number_of_targets,
        memory=memory,
        classes=CLASSES,
        unseen_classes=len(dataset.classes),
        pixels=math.prod(dataset.size),
        weights_vma=count_weights(with_memory.model),
        weights_vae=count_weights(vae.model),
        seed=seed,
        dataset=f"{dataset.name} ({dataset.split})",
        provenance=dataset.provenance,
        training=training,
    )


def count_weights(model: GenerativeModel) -> int:
    """Number of weights."""
    return sum(weight.numel() for weight in model.parameters())
