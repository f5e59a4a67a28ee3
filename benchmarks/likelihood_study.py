"""Pixels that know their neighbours: ways to keep the memory alive, on held-out training classes.

    python -m benchmarks.likelihood_study results/likelihood-study.json --judge MODEL --updates 1500

trains a model in every way for the same updates, awake, and looks at 60 classes of the training part that it has
not seen. Several processes may share one JSON: each takes what nobody has begun.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from benchmarks import shared_runs
from benchmarks.sleep_study import CPU, FAR, accuracy
from vma.bounds import decomposition, multi_sample_bound
from vma.build import build_vma
from vma.data.dataset import Dataset
from vma.data.samplers import EpisodeSampler
from vma.evaluation.classification import trial_draw
from vma.fewshot.recognition import class_log_likelihoods
from vma.files import write_atomically
from vma.memory import Memory
from vma.model import VMA
from vma.runs.presets import PRESETS
from vma.runs.processes import Processes, keep_memory
from vma.runs.settings import BlindSettings, SleepSettings, TrainSettings
from vma.storage import load_model, save_model
from vma.training.episodes import datasets, generator, open_episodes
from vma.training.phases import Awake
from vma.warps import WarpSettings

Row = dict[str, Any]
EPISODES, SAMPLES = 16, 16  # of the bound
TRIALS = 200  # by likelihood, 20 classes with one item each
BASE = replace(PRESETS["omniglot-fewshot-4-fast"], sleep=SleepSettings(), warps=WarpSettings())


def in_order(
    start: float, end: float, *neighbourhood: int, until: float = 1.0, **changes: Any
) -> TrainSettings:
    """`reading-order` with such a neighbourhood, and a share of blind targets from `start` to `end`."""
    model = replace(BASE.model, likelihood="reading-order", neighbourhood=neighbourhood, **changes)
    return replace(BASE, model=model, blind=BlindSettings(start, end, until))


WAYS = {
    "bernoulli": BASE,
    "7, 5, 5": in_order(0.0, 0.0, 7, 5, 5),
    "7, 5, 5; half blind": in_order(0.5, 0.5, 7, 5, 5),
    "7, 5, 5; blind 1 → 0": in_order(1.0, 0.0, 7, 5, 5),
    "7, 5, 5; blind 0.5 → 0": in_order(0.5, 0.0, 7, 5, 5),
    "3": in_order(0.0, 0.0, 3),
    "5": in_order(0.0, 0.0, 5),
    "5; half blind": in_order(0.5, 0.5, 5),
    "7; half blind": in_order(0.5, 0.5, 7),
    "7, 5, 5; a quarter blind": in_order(0.25, 0.25, 7, 5, 5),
    "7, 5, 5; blind 1 → 0.25": in_order(1.0, 0.25, 7, 5, 5),
    "7, 5, 5; blind 1 → 0 by half-way": in_order(1.0, 0.0, 7, 5, 5, until=0.5),
    "7, 5, 5; 32 maps; blind 1 → 0 by half-way": in_order(1.0, 0.0, 7, 5, 5, until=0.5, context_maps=32),
    "5; blind 1 → 0 by half-way": in_order(1.0, 0.0, 5, until=0.5),
}


@dataclass(frozen=True)
class Options:
    """What is compared.

    Attributes:
        path: The JSON; runs that it holds already are not made again.
        judge: A model with the Bernoulli likelihood, which says from which of 20 items a sample came.
        updates: Of each run.
        seeds: Of the runs.
        data: Folder with the data files.
        only: Ways to run, by their number; all if none is named.
        models: Folder to keep the models in; none are kept if there is none.
        trained: Models that are looked at in the same way, instead of training any.
    """

    path: Annotated[Path, tyro.conf.Positional]
    judge: Path
    updates: int = 1500
    seeds: tuple[int, ...] = (0,)
    data: Path | None = None
    only: tuple[int, ...] = ()
    models: Path | None = None
    trained: tuple[Path, ...] = ()


def run(way: str, seed: int, options: Options) -> Row:
    """Train in one way with one seed, and look at held-out training classes, the same for all seeds."""
    settings = replace(WAYS[way], seed=seed, threads=1, updates=options.updates)
    _, held_out = datasets(replace(settings, seed=0), options.data)
    streams = open_episodes(replace(settings, seed=0), options.data)
    torch.manual_seed(seed)
    phase = Awake(build_vma(settings.model), settings, streams, Processes(0, 1, CPU))
    began = time.process_time()
    for update in range(options.updates):
        phase.step(seed * FAR + update, update, update / options.updates)
    seconds, model = time.process_time() - began, phase.average.model
    assert isinstance(model, VMA)
    if options.models:
        save_model(model, options.models / f"{list(WAYS).index(way)}-{seed}-{options.updates}.safetensors")
    found = measure(model, held_out, load_judge(options.judge))
    return {"way": way, "seed": seed, "updates": options.updates, "seconds": seconds, **found}


def load_judge(path: Path) -> VMA:
    """The model that looks at samples of others."""
    judge = load_model(path)
    assert isinstance(judge, VMA)
    return judge


def measure(model: VMA, data: Dataset, judge: VMA) -> Row:
    """Everything that a likelihood is to be judged by."""
    return {
        **accuracy(model, data),
        **bounds(model, data),
        "20-way 1-shot by likelihood": by_likelihood(model, data),
        "samples recognised": recognised(model, data, judge),
    }


@torch.no_grad()
def bounds(model: VMA, data: Dataset) -> Row:
    """NLL and divergences with 8 classes × 4 in memory, and what these are worth against eight other classes."""
    sampler, rows = EpisodeSampler(data, classes=8, distractors=8, targets=4, shots=4), []
    for number in range(EPISODES):
        episode = sampler.episode(number).tensors()
        own = episode.memory_labels < 8
        terms, elsewhere = (
            model.terms(episode.targets, Memory(memory), SAMPLES, generator=generator(0, number, 0, CPU))
            for memory in (episode.memory[own], episode.memory[~own])
        )
        parts, bound = decomposition(terms), multi_sample_bound(terms)
        worth = bound - multi_sample_bound(elsewhere)
        rows.append(torch.stack([-bound, worth, parts.kl_a, parts.kl_z]).mean(1))
    return dict(zip(("nll", "worth", "kl_a", "kl_z"), torch.stack(rows).mean(0).tolist(), strict=True))


@torch.no_grad()
def by_likelihood(model: VMA, data: Dataset) -> float:
    """Share of right answers among 20 classes with one item each, by log p(x,y|M)."""
    draw, right = trial_draw(data, 20, 1, seed=0), 0
    for trial in range(TRIALS):
        episode = draw(trial).tensors()
        memory = Memory(episode.memory, episode.memory_labels)
        source = generator(0, trial, 0, CPU)
        scores = class_log_likelihoods(model, memory, episode.targets, 20, SAMPLES, source)
        right += int(scores.argmax()) == int(episode.target_labels)
    return right / TRIALS


@torch.no_grad()
def recognised(model: VMA, data: Dataset, judge: VMA, each: int = 5) -> float:
    """Share of samples, `each` from every one of 20 items, that the judge's q(a|x) gives to their item."""
    sampler, found = EpisodeSampler(data, classes=20, targets=1, shots=1), []
    for number in range(EPISODES):
        memory = Memory(sampler.episode(number).tensors().memory)
        addresses = torch.arange(20).repeat_interleave(each)
        drawn = model.sample(memory, addresses=addresses, generator=generator(0, number, 0, CPU))
        found.append(judge.posterior(drawn.images, memory).log_probs.argmax(-1) == addresses)
    return float(torch.cat(found).float().mean())


FIGURES = {
    "NLL": ("nll", 1, 2),
    "worth": ("worth", 1, 1),
    "KL_a": ("kl_a", 1, 2),
    "KL_z": ("kl_z", 1, 1),
    "20-1 by p(x,y\\|M)": ("20-way 1-shot by likelihood", 100, 1),
    "20-1 by q(a\\|x)": ("20-way 1-shot", 100, 1),
    "mass": ("own_class_mass", 1, 3),
    "samples recognised": ("samples recognised", 100, 1),
}


def table(rows: Sequence[Row]) -> str:
    """A Markdown table of means over seeds."""
    return shared_runs.table(rows, FIGURES)


def main(options: Options) -> None:
    """Run what nobody has run or begun yet, seed by seed, and print the table."""
    torch.set_num_threads(1)
    keep_memory()
    if options.trained:
        look(options)
        return
    ways = list(WAYS)
    for seed in options.seeds:
        for way in [ways[i] for i in options.only] or ways:
            if shared_runs.claim(options.path, way, seed):
                add(options, run(way, seed, options))
    print(table(shared_runs.stored(options.path)["runs"]))


def look(options: Options) -> None:
    """Measure trained models on the held-out training classes, and write their table."""
    _, held_out = datasets(BASE, options.data)
    judge, rows = load_judge(options.judge), []
    for path in options.trained:
        model = load_judge(path)
        rows.append({"way": path.stem, "config": asdict(model.config), **measure(model, held_out, judge)})
    answer = {**about(options), "runs": rows}
    write_atomically(options.path, json.dumps(answer, indent=1).encode())
    print(table(rows))


def about(options: Options) -> Row:
    """What every answer says."""
    return {
        "data": "omniglot 45-5, 60 held-out training classes, 8 × 4 in memory",
        "judge": options.judge.name,
        "samples": SAMPLES,
        "episodes": EPISODES,
        "trials": TRIALS,
    }


def add(options: Options, row: Row) -> None:
    """Add a run to the JSON, with the settings of its way."""
    settings = {way: asdict(chosen) for way, chosen in WAYS.items()}
    shared_runs.add(options.path, row, settings, {**about(options), "updates": options.updates})


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
