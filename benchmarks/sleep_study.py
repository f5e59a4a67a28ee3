"""What q(a|x) learns asleep: one model, and many ways to sleep, on held-out training classes.

    python -m benchmarks.sleep_study asleep results/sleep-study.json --model MODEL --seconds 60

trains the matching networks of one trained model in every way, for the same seconds of the processor, and

    python -m benchmarks.sleep_study awake results/wake-study.json --seconds 120

trains models from the start, with another q(a|x) while awake. Every run is looked at on 60 classes of the training
part that it has not seen: share of right answers by q(a|x), its mass on the right class, and the K-sample bound.
"""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
import tyro
from torch import Tensor

from vma.addressing import class_mass
from vma.bounds import BoundTerms, log_mean_exp
from vma.build import parts_of
from vma.data.dataset import Dataset
from vma.data.samplers import EpisodeSampler
from vma.evaluation.classification import ClassifyOptions
from vma.files import write_atomically
from vma.memory import Memory
from vma.model import VMA
from vma.reads import Reads
from vma.runs.presets import PRESETS
from vma.runs.processes import Processes, keep_memory
from vma.runs.settings import NEVER, EpisodeSettings, SleepSettings, TrainSettings
from vma.storage import load_model
from vma.training.episodes import datasets, generator, open_episodes
from vma.training.phases import Asleep, Awake, Phase
from vma.warps import WarpSettings, strength

CPU = torch.device("cpu")
TASKS = ClassifyOptions().tasks
TRIALS = 2000
FAR = 1_000_000  # updates between two seeds: their episodes and dreams differ, their classes are the same
Row = dict[str, Any]

BASE = replace(
    PRESETS["omniglot-fewshot-4-fast"], sleep=SleepSettings(share=0.5, dreams=128), warps=strength(1.0)
)


def sleeping(warps: WarpSettings | None = None, **changes: Any) -> TrainSettings:
    """The reference, but for what is named."""
    return replace(BASE, sleep=replace(BASE.sleep, **changes), warps=BASE.warps if warps is None else warps)


ASLEEP = {
    "reference: one new network, warps, 128 dreams, 8 classes × 4": sleeping(),
    "two new networks": sleeping(matching="anew"),
    "two networks as they were awake": sleeping(matching="kept"),
    "no warps": sleeping(WarpSettings()),
    "warps × 0.5": sleeping(strength(0.5)),
    "warps × 1.5": sleeping(strength(1.5)),
    "warps and turns": sleeping(strength(1.0, turns=True)),
    "64 dreams": sleeping(dreams=64),
    "256 dreams": sleeping(dreams=256),
    "probabilities instead of black and white": sleeping(binary=False),
    "32 classes × 4": sleeping(classes=(32,)),
    "8, 32 and 96 classes × 2 in turn": sleeping(classes=(8, 32, 96), shots=2),
    "warps and turns, 64 dreams": sleeping(strength(1.0, turns=True), dreams=64),
    "warps and turns, 8 and 32 classes × 4 in turn": sleeping(strength(1.0, turns=True), classes=(8, 32)),
}


def awake(tied: bool = False, **changes: Any) -> TrainSettings:
    """The wake phase of the fast preset with 16 maps, but for what is named."""
    plain: dict[str, Any] = {"sleep": SleepSettings(), "warps": WarpSettings(), "updates": NEVER}
    return replace(BASE, model=replace(BASE.model, maps=16, tied=tied), **{**plain, **changes})


WARPED = {"warps": strength(1.0), "warp_awake": True}
AWAKE = {
    "reference: VIMCO": awake(),
    "one network for keys and queries": awake(tied=True),
    "warps": awake(**WARPED),
    "one network, warps": awake(tied=True, **WARPED),
    "one network, sleep beside from the start": awake(
        tied=True, sleep=SleepSettings(beside=1.0, dreams=32), warps=strength(1.0)
    ),
    "one network, sleep beside from half-way": awake(
        tied=True, sleep=SleepSettings(beside=1.0, dreams=32, begin=0.5), warps=strength(1.0)
    ),
    "32 classes × 4, one target each": awake(episode=EpisodeSettings(classes=32, targets=1, shots=4)),
    "REINFORCE": awake(estimator="reinforce"),
    "one ε of z for all K reads": awake(preset="shared-noise"),
    "2 reads with 2 z each, pathwise": awake(preset="two-z", latent_gradient="pathwise"),
}


@dataclass(frozen=True)
class Options:
    """What is compared.

    Attributes:
        kind: `asleep` or `awake`.
        path: The JSON; runs that it holds already are not made again.
        model: The trained model that sleeps.
        seconds: Of the processor, for each run.
        seeds: Of the runs.
        data: Folder with the data files.
        only: Ways to run, by their number; all if none is named.
    """

    kind: Annotated[Literal["asleep", "awake"], tyro.conf.Positional]
    path: Annotated[Path, tyro.conf.Positional]
    model: Path | None = None
    seconds: float = 60.0
    seeds: tuple[int, ...] = (0, 1, 2)
    data: Path | None = None
    only: tuple[int, ...] = ()


def start(kind: str, settings: TrainSettings, options: Options) -> Phase:
    """The phase that is studied."""
    streams, here = open_episodes(replace(settings, seed=0), options.data), Processes(0, 1, CPU)
    torch.manual_seed(settings.seed)
    if kind == "awake":
        return Awake(variant(settings), settings, streams, here)
    assert options.model is not None, "name a trained --model"
    return Asleep(load_model(options.model), settings, streams, here)


def run(kind: str, name: str, seed: int, options: Options) -> Row:
    """Train in one way with one seed, and look at held-out training classes, the same for all seeds."""
    settings = replace((ASLEEP if kind == "asleep" else AWAKE)[name], seed=seed, threads=1)
    _, held_out = datasets(replace(settings, seed=0), options.data)
    phase = start(kind, settings, options)
    updates, used = 0, 0.0
    while used < options.seconds:
        began = time.process_time()
        phase.step(seed * FAR + updates, updates, used / options.seconds)
        updates, used = updates + 1, used + time.process_time() - began
    model = phase.average.model
    assert isinstance(model, VMA)
    means = {key: value for key, value in phase.window.row(updates).items() if key != "update"}
    found = {**accuracy(model, held_out), "nll": nll(model, held_out)}
    return {
        "way": name,
        "seed": seed,
        "updates": updates,
        "seconds": options.seconds,
        **found,
        "training": means,
    }


@torch.no_grad()
def accuracy(model: VMA, data: Dataset) -> Row:
    """Share of right answers by q(a|x) in each task, and the right class's mass with all classes × 4."""
    images = torch.from_numpy(data.images).float() / 255
    keys = model.addressing.keyed(Memory(images)).keys
    query = model.addressing.query or model.addressing.key
    queries = torch.cat([query(part) for part in images.split(256)])
    draw, by_class = (
        np.random.default_rng(0),
        [np.flatnonzero(data.labels == c) for c in range(len(data.classes))],
    )
    found: Row = {}
    for ways, shots in TASKS:
        right = 0
        for _ in range(TRIALS):
            classes = draw.choice(len(by_class), ways, replace=False)
            chosen = [draw.choice(by_class[c], shots + 1, replace=False) for c in classes]
            scores = keys[np.concatenate([each[1:] for each in chosen])] @ queries[chosen[0][0]]
            right += int(scores.softmax(0).view(ways, shots).sum(1).argmax() == 0)
        found[f"{ways}-way {shots}-shot"] = right / TRIALS
    return {**found, **mass_of_all(keys, queries, by_class, draw)}


def mass_of_all(
    keys: Tensor, queries: Tensor, by_class: Sequence[np.ndarray], draw: np.random.Generator
) -> Row:
    """Mass of q(a|x) on the right class, and how often it has the most, with all classes × 4 in memory."""
    order = [draw.permutation(each) for each in by_class]
    memory, targets = (np.concatenate([each[part] for each in order]) for part in (slice(4), slice(4, 20)))
    labels = torch.arange(len(by_class)).repeat_interleave(4)
    own = torch.from_numpy(np.concatenate([np.full(len(each[4:20]), c) for c, each in enumerate(order)]))
    mass = class_mass((queries[targets] @ keys[memory].T).softmax(-1), labels)
    return {
        "own_class_mass": float(mass.gather(1, own[:, None]).mean()),
        "own_class_first": float((mass.argmax(1) == own).float().mean()),
    }


@torch.no_grad()
def nll(model: VMA, data: Dataset, episodes: int = 16, samples: int = 16) -> float:
    """−L with 8 classes × 4 in memory, on the same targets for every model."""
    sampler, total = EpisodeSampler(data, classes=8, targets=4, shots=4), 0.0
    for number in range(episodes):
        episode = sampler.episode(number).tensors()
        memory = Memory(episode.memory, episode.memory_labels)
        source = generator(0, number, 0, CPU)
        total -= float(model.bound(episode.targets, memory, samples, generator=source).mean())
    return total / episodes


def independent(addresses: Tensor) -> Reads:
    """Independent reads at these addresses."""
    return Reads(addresses, torch.full(addresses.shape, -math.log(addresses.shape[1])))


class SharedNoise(VMA):
    """All K reads of a target share the noise of z: what differs between their weights is the address."""

    def terms_at(
        self, x: Tensor, memory: Memory, p_a: Any, q_a: Any, reads: Any, noise: Tensor, **how: Any
    ) -> Any:
        """The terms at the noise of the first read."""
        return super().terms_at(x, memory, p_a, q_a, reads, noise[:, :1].expand_as(noise), **how)


class TwoEach(VMA):
    """Half as many addresses with two z each: w_k is the mean of both."""

    def terms(self, x: Any, memory: Memory | None = None, samples: int = 4, **how: Any) -> BoundTerms:
        """Terms of the addresses, whose log p(x|m,z) holds all that depends on z."""
        if not torch.is_grad_enabled():
            return super().terms(x, memory, samples, **how)
        x, keyed, source = self.targets(x), self.keyed(memory), how["generator"]
        memory, p_a, q_a = keyed.memory, self.addressing.prior(keyed), self.addressing.posterior(x, keyed)
        a = q_a.sample(samples // 2, source)
        twice = independent(a.repeat_interleave(2, dim=1))
        noise = torch.randn((*twice.addresses.shape, self.latent), generator=source)
        both = self.terms_at(x, memory, p_a, q_a, twice, noise)
        log_p_x = log_mean_exp((both.log_p_z + both.log_p_x - both.log_q_z).unflatten(1, (-1, 2)))
        none, reads = torch.zeros_like(log_p_x), independent(a)
        return BoundTerms(
            reads.log_prob(p_a), reads.log_prob(q_a), none, none, log_p_x, reads.log_mass,
            both.kl_z.unflatten(1, (-1, 2)).mean(-1), p_a, q_a,
        )  # fmt: skip


def variant(settings: TrainSettings) -> VMA:
    """The model, with the reads that the way is named for."""
    kinds: dict[str, type[VMA]] = {"shared-noise": SharedNoise, "two-z": TwoEach}
    return kinds.get(settings.preset, VMA)(*parts_of(settings.model))


FIGURES = (*(f"{ways}-way {shots}-shot" for ways, shots in TASKS), "own_class_mass", "own_class_first", "nll")


def summary(rows: Sequence[Row]) -> list[Row]:
    """For each way: means over seeds, and the difference to the first way with its error, paired by seed."""
    ways = list(dict.fromkeys(row["way"] for row in rows))
    first = {row["seed"]: row for row in rows if row["way"] == ways[0]}
    found = []
    for way in ways:
        mine = [row for row in rows if row["way"] == way and row["seed"] in first]
        line: Row = {"way": way, "seeds": len(mine), "updates": sum(r["updates"] for r in mine) // len(mine)}
        for name in FIGURES:
            gains = np.array([row[name] - first[row["seed"]][name] for row in mine])
            error = float(gains.std(ddof=1) / math.sqrt(len(gains))) if len(gains) > 1 else None
            mean = float(np.mean([row[name] for row in mine]))
            line[name] = {"mean": mean, "gain": float(gains.mean()), "error": error}
        found.append(line)
    return found


def table(rows: Sequence[Row]) -> str:
    """A Markdown table: shares in per cent, mass, nats; the 20-way 1-shot gain over the first way."""
    head = "| way | updates | 5-1 | 5-5 | 20-1 | 20-5 | mass | first | NLL | 20-1 against the first |"
    lines = [head, "|---" * 10 + "|"]
    for row in summary(rows):
        shares = [f"{100 * row[name]['mean']:.1f}" for name in FIGURES[:4]]
        mass = [f"{row[name]['mean']:.3f}" for name in FIGURES[4:6]]
        gain, error = 100 * row[FIGURES[2]]["gain"], row[FIGURES[2]]["error"]
        against = f"{gain:+.1f}".replace("-", "−") + ("" if error is None else f" ± {100 * error:.1f}")
        cells = [row["way"], str(row["updates"]), *shares, *mass, f"{row['nll']['mean']:.2f}", against]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(options: Options) -> None:
    """Run what the JSON does not hold yet, seed by seed, and print the table."""
    torch.set_num_threads(1)
    keep_memory()
    ways = list(ASLEEP if options.kind == "asleep" else AWAKE)
    chosen = [ways[i] for i in options.only] if options.only else ways
    rows: list[Row] = json.loads(options.path.read_text())["runs"] if options.path.exists() else []
    done = {(row["way"], row["seed"]) for row in rows}
    for seed in options.seeds:
        for way in chosen:
            if (way, seed) not in done:
                rows.append(run(options.kind, way, seed, options))
                rows.sort(key=lambda row: (ways.index(row["way"]), row["seed"]))
                write_atomically(options.path, json.dumps(answer(rows, options), indent=1).encode())
    print(table(rows))


def answer(rows: Sequence[Row], options: Options) -> Row:
    """The JSON: settings of every way, all runs, and their summary."""
    ways = ASLEEP if options.kind == "asleep" else AWAKE
    settings = {way: asdict(ways[way]) for way in dict.fromkeys(row["way"] for row in rows)}
    model = options.model.name if options.model else None
    about = {"kind": options.kind, "model": model, "seconds": options.seconds, "trials": TRIALS}
    data = "omniglot 45-5, 60 held-out training classes; NLL with 8 classes × 4, K = 16"
    return {**about, "data": data, "summary": summary(rows), "runs": list(rows), "settings": settings}


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
