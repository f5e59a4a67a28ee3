"""How much the adaptive bound gains over independent reads at the same number of reads, target by target.

    python -m benchmarks.tighter_bound RUN results/tighter-bound.json

RUN is the folder of a trained model; test classes, 8 classes × 4 items, protocol `disjoint`, 64 targets.
"""

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from vma.data.samplers import EpisodeSampler
from vma.evaluation import bounds, open_run
from vma.evaluation.json_values import plain
from vma.evaluation.statistics import mean_of
from vma.evaluation.trained_run import TrainedRun
from vma.memory import Memory
from vma.runs.folder import Run

SAMPLES, EPISODES, SEED = (16, 64, 256), 2, 0
SAMPLINGS = ("independent", "adaptive")


def compare(trained: TrainedRun, samples: int) -> dict[str, Any]:
    """Both bounds on the same targets, and the difference."""
    sampler = EpisodeSampler(trained.dataset, classes=8, targets=4, shots=4, seed=SEED)
    episodes = [sampler.episode(step).tensors() for step in range(EPISODES)]
    found, seconds = {}, {}
    for sampling in SAMPLINGS:
        began, source = time.process_time(), trained.generator(SEED, samples)
        found[sampling] = torch.cat(
            [bounds(trained.model, e.targets, Memory.of(e.memory), samples, sampling=sampling, generator=source)
             for e in episodes]
        ).double()  # fmt: skip
        seconds[sampling] = round(time.process_time() - began, 2)
    groups = [(number, label) for number, e in enumerate(episodes) for label in e.target_labels.tolist()]
    gain = (found["adaptive"] - found["independent"]).tolist()
    nll = {sampling: asdict(mean_of((-found[sampling]).tolist(), groups)) for sampling in SAMPLINGS}
    return {"samples": samples, "nll": nll, "gain": asdict(mean_of(gain, groups)), "seconds": seconds}


def main(run: Run, path: Path) -> None:
    """All K, and the JSON."""
    torch.set_num_threads(1)
    trained = open_run(run)
    rows = [compare(trained, samples) for samples in SAMPLES]
    asked = {"protocol": "disjoint", "classes": 8, "shots": 4, "targets": 32 * EPISODES, "seed": SEED}
    about = {**plain(trained.about), **asked}
    path.write_text(json.dumps({**about, "rows": rows}, indent=1))
    for row in rows:
        print(row["samples"], row["nll"], "gain", row["gain"], row["seconds"], flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(Run(Path(sys.argv[1])), Path(sys.argv[2]))
