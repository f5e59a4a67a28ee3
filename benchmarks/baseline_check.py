"""VAE, soft attention and VMA on the same unseen targets, as the number of classes in memory grows.

    python -m benchmarks.baseline_check results/baseline-check.json vae=RUN soft-attention=RUN vma=RUN

Each RUN is a folder of `vma train`, all of the same number of updates. Protocol `disjoint`: no target is in memory.
For an optimal model of disjoint classes the NLL grows by log C over that of one class. Every model sees the
same targets at every C, so its NLL is also compared with the first model's, target by target.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from vma.evaluation import ClassesOptions, classes_sweep, open_run
from vma.evaluation.json_values import plain
from vma.evaluation.statistics import mean_of
from vma.evaluation.sweeps import SweepSetting, pool
from vma.runs.folder import Run

CLASSES, TARGETS, SAMPLES, SEED = (1, 2, 4, 8, 16, 32), 2, 64, 0


def sweep(kind: str, run: Run) -> dict[str, Any]:
    """The NLL of one run at every number of classes, with as many items a class as in training."""
    options = ClassesOptions(CLASSES, targets=TARGETS, samples=SAMPLES, seed=SEED)
    evaluation = classes_sweep(open_run(run), options)
    rows = [evaluation.part(number) for number in range(evaluation.parts)]
    shots = evaluation.about["shots"]
    pooled = {classes: pool(rows, SweepSetting(classes, shots)) for classes in CLASSES}
    points = evaluation.summary(rows).points
    print(kind, *(f"C={p.classes}: {p.nll.value:.1f}" for p in points), sep="  ", flush=True)
    said = {"model": kind, **evaluation.about["model"], "shots": shots}
    return {**said, "points": [plain(point) for point in points], "pooled": pooled}


def against(model: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    """The model without its single values, and how far it is above the first one, paired by target."""
    above = {}
    for c in CLASSES:
        (ours, groups), (theirs, _) = model["pooled"][c], first["pooled"][c]
        differences = [one - other for one, other in zip(ours.nll, theirs.nll, strict=True)]
        above[str(c)] = asdict(mean_of(differences, groups))
    kept = {key: value for key, value in model.items() if key != "pooled"}
    return {**kept, "above_first": above}


def main(path: Path, runs: dict[str, Path]) -> None:
    """Measure all runs and write the JSON."""
    torch.set_num_threads(1)
    found = [sweep(kind, Run(folder)) for kind, folder in runs.items()]
    about = {"data": "omniglot 45-5 test, 26x26", "protocol": "disjoint", "samples": SAMPLES, "seed": SEED}
    models = [against(each, found[0]) for each in found]
    path.write_text(json.dumps({**about, "models": models}, indent=1))
    for model in models:
        print(model["model"], {c: round(a["value"], 2) for c, a in model["above_first"].items()})


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), {k: Path(v) for k, v in (word.split("=", 1) for word in sys.argv[2:])})
