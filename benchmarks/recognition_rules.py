"""Which α, β and κ make the probabilities of recognition true, on classes that no training has seen.

    python -m benchmarks.recognition_rules MODEL results/recognition-rules.json

MODEL is a file or the folder of a run that was trained without 60 classes of Omniglot's training part, as the
presets are. Drawings of these classes are recognised; the test classes are not looked at.
"""

import json
import sys
import time
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vma.addressing import class_mass
from vma.data import load_dataset
from vma.data.dataset import Dataset
from vma.data.samplers import EpisodeSampler
from vma.evaluation.calibration import LEAST, Forecast, of_forecasts
from vma.fewshot import TrainedModel, load
from vma.fewshot.recognition import FEW, Rule, log_likelihoods
from vma.files import write_atomically

HELD_OUT, TARGETS, SAMPLES, SEED = 60, 400, 8, 0
TASKS = ((5, 1), (5, 5), (20, 1), (20, 2), (20, 5), (20, 10))
ALPHAS, BETAS = (0.0, 0.6, 0.8, 1.0, 1.2), (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 1.0)
KAPPAS = (0.0, 0.15, 0.3, 0.45)
RULES = [Rule(FEW, *each) for each in product(ALPHAS, BETAS, KAPPAS)]


def held_out_classes() -> Dataset:
    """The classes of the training part that no model is trained on."""
    return load_dataset("omniglot", "train").hold_out_classes(HELD_OUT, 0)[1]


@torch.no_grad()
def ask(model: TrainedModel, data: Dataset, ways: int, shots: int) -> dict[str, Any]:
    """Every rule on the same targets, one of each class of an episode; likelihoods are asked for once."""
    sampler = EpisodeSampler(data, classes=ways, targets=1, shots=shots, seed=SEED)
    said: list[list[Forecast]] = [[] for _ in RULES]
    for step in range(-(-TARGETS // ways)):
        episode = sampler.episode(step).tensors()
        keyed = model.model.remember(episode.memory)
        log_q = model.model.posterior(episode.targets, keyed).log_probs
        best, proposed = log_q.topk(min(FEW, len(keyed)))
        noise = torch.Generator().manual_seed(step)
        log_p = model.model.prior(keyed).log_probs[proposed]
        log_p = log_p + log_likelihoods(model.model, keyed, episode.targets, SAMPLES, noise, proposed)
        for rule, forecasts in zip(RULES, said, strict=True):
            shares = log_q.scatter(1, proposed, rule.pool(best, log_p)).exp().double()
            sharp = rule.sharpen(shares, episode.memory_labels.tolist())
            forecasts += forecasts_of(class_mass(sharp, episode.memory_labels, ways), episode.target_labels)
    return {"ways": ways, "shots": shots, "targets": len(said[0]), "rules": [numbers(f) for f in said]}


def forecasts_of(mass: Float[Tensor, "batch classes"], labels: Tensor) -> list[Forecast]:
    """What was said of each target."""
    top, place = mass.clamp(LEAST, 1.0).max(1)
    log_prob = mass.clamp(LEAST, 1.0).gather(1, labels[:, None]).squeeze(1).log()
    rows = zip(top.tolist(), (place == labels).tolist(), log_prob.tolist(), strict=True)
    return [Forecast(p, hit, log, milliseconds=0.0) for p, hit, log in rows]


def numbers(forecasts: list[Forecast]) -> dict[str, float]:
    """Accuracy, log-probability of the right class and calibration error."""
    found = of_forecasts(forecasts)
    values = (found.accuracy.value, found.log_prob.value, found.calibration_error)
    names = ("accuracy", "log_prob", "calibration_error")
    return {name: round(value, 5) for name, value in zip(names, values, strict=True)}


def overall(tasks: list[dict[str, Any]], place: int) -> dict[str, Any]:
    """One rule over all tasks: the mean log-probability of the right class, and the largest calibration error."""
    own = [task["rules"][place] for task in tasks]
    log_prob = round(sum(each["log_prob"] for each in own) / len(own), 5)
    worst = max(each["calibration_error"] for each in own)
    return {**asdict(RULES[place]), "log_prob": log_prob, "calibration_error": worst}


def main(model: Path, out: Path) -> None:
    """All tasks, the best rule with and without q(a|x), and the JSON."""
    torch.set_num_threads(1)
    trained, data, began = load(model), held_out_classes(), time.monotonic()
    tasks = [ask(trained, data, *task) for task in TASKS]
    rules = [overall(tasks, place) for place in range(len(RULES))]
    best = {
        name: max(
            (rule for rule in rules if (rule["alpha"] > 0) == with_q), key=lambda rule: rule["log_prob"]
        )
        for name, with_q in (("joined", True), ("proposals", False))
    }
    about = {
        "model": trained.name,
        "fingerprint": trained.fingerprint,
        "data": data.split,
        "samples": SAMPLES,
    }
    found = {
        **about,
        "best": best,
        "rules": rules,
        "tasks": tasks,
        "seconds": round(time.monotonic() - began),
    }
    write_atomically(out, json.dumps(found, indent=1).encode())
    for name, rule in best.items():
        print(name, rule)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
