"""Why a learned memory collapses: how far apart its items start, and when q(a|x) and p(a) begin to learn.

    python -m benchmarks.memory_study results/memory-study.json --updates 2000

trains 256 learned items on binarized MNIST in every way for the same updates, and looks at the validation digits.
Several processes may share one JSON.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import torch
import tyro

from benchmarks import shared_runs
from benchmarks.shared_runs import Row
from vma.build import build_vma
from vma.data.dataset import Dataset
from vma.evaluation.episodes import NllOptions, nll
from vma.evaluation.trained_run import TrainedRun
from vma.memory import START
from vma.model import VMA
from vma.runs.presets import PRESETS
from vma.runs.processes import Processes, keep_memory
from vma.runs.settings import TrainSettings
from vma.training.episodes import datasets, open_episodes
from vma.training.phases import Awake

OPTIONS = NllOptions(episodes=32, samples=50)


@dataclass(frozen=True)
class Way:
    """How a learned memory begins.

    Attributes:
        deviation: Of its items at the start.
        wait: Updates after which q(a|x) and p(a) begin to learn.
        item_layers: Layers of the decoder that m is given to.
        prior: p(a).
        mean_digit: Whether the output starts at the mean digit instead of at its share of ink.
    """

    deviation: float
    wait: int = 0
    item_layers: str = "all"
    prior: str = "learned"
    mean_digit: bool = False

    def settings(self, updates: int, seed: int) -> TrainSettings:
        """The run's settings."""
        base = PRESETS["mnist-learned-256-fast"]
        model = replace(base.model, item_layers=self.item_layers, prior=self.prior)
        return replace(base, model=model, address_after=self.wait, updates=updates, seed=seed, threads=1)


WAYS = {
    "1 (as it was), m to the first layer": Way(1.0, item_layers="first"),
    "1 (as it was)": Way(1.0),
    "1, flat p(a)": Way(1.0, prior="flat"),
    "1, output starts at the mean digit": Way(1.0, mean_digit=True),
    "1, addresses wait": Way(1.0, 300),
    "0.3": Way(0.3),
    "0.3, output starts at the mean digit": Way(0.3, mean_digit=True),
    "0.3, addresses wait": Way(0.3, 300),
    "0.3, addresses wait, m to the first layer": Way(0.3, 300, "first"),
    "0.1": Way(0.1),
    "0.1, addresses wait": Way(0.1, 300),
}
FIGURES = {
    "NLL": ("nll", 1.0, 1),
    "KL_a": ("kl_a", 1.0, 2),
    "KL_z": ("kl_z", 1.0, 1),
    "H(p(a))": ("entropy_p_a", 1.0, 2),
    "items in use": ("items_in_use", 1.0, 0),
}


@dataclass(frozen=True)
class Options:
    """What is compared.

    Attributes:
        path: The JSON; runs that it holds already are not made again.
        updates: Of each run.
        seeds: Of the runs.
        data: Folder with the data files.
    """

    path: Annotated[Path, tyro.conf.Positional]
    updates: int = 2000
    seeds: tuple[int, ...] = (0, 1, 2)
    data: Path | None = None


def run(way: str, seed: int, options: Options) -> Row:
    """Train in one way with one seed, and look at the validation digits."""
    chosen = WAYS[way]
    settings = chosen.settings(options.updates, seed)
    digits, held_out = datasets(settings, options.data)
    torch.manual_seed(seed)
    model = build_vma(settings.model)
    assert model.learned_memory is not None
    model.learned_memory.items.data.mul_(chosen.deviation / START)
    if chosen.mean_digit:
        start_at_mean_digit(model, digits)
    streams = open_episodes(settings, options.data)
    phase = Awake(model, settings, streams, Processes(0, 1, torch.device("cpu")))
    for update in range(options.updates):
        phase.step(update, update, update / options.updates)
    return {"way": way, "seed": seed, **measure(TrainedRun(phase.average.model, held_out, settings))}


def start_at_mean_digit(model: VMA, data: Dataset) -> None:
    """The output's biases ← the log-odds of ink at every pixel."""
    ink = torch.from_numpy(data.images).float().div_(255).mean(0).clamp(0.005, 0.995)
    model.networks.decoder[-1].bias.data.copy_(ink.logit().flatten())


def measure(trained: TrainedRun) -> Row:
    """NLL, divergences, and how much of the memory is in use."""
    found = nll(trained, OPTIONS).results()
    means = {"nll": found.nll.value, "kl_a": found.kl_a.value, "kl_z": found.kl_z.value}
    return {**means, "entropy_p_a": found.entropy_p_a, "items_in_use": found.items_in_use}


def table(rows: Sequence[Row]) -> str:
    """A Markdown table of means over seeds."""
    return shared_runs.table(rows, FIGURES)


def main(options: Options) -> None:
    """Run what nobody has run or begun yet, seed by seed, and print the table."""
    torch.set_num_threads(1)
    keep_memory()
    settings = {way: asdict(chosen.settings(options.updates, 0)) for way, chosen in WAYS.items()}
    said = {
        "data": "binarized-mnist, validation part",
        "options": asdict(OPTIONS),
        "updates": options.updates,
        "ways": {way: asdict(chosen) for way, chosen in WAYS.items()},
    }
    for seed in options.seeds:
        for way in WAYS:
            if shared_runs.claim(options.path, way, seed):
                shared_runs.add(options.path, run(way, seed, options), settings, said)
    print(table(shared_runs.stored(options.path)["runs"]))


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
