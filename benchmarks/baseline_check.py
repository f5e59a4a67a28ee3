"""VAE, soft attention, GMN and VMA on the same unseen classes, as the number of classes in memory grows.

    python -m benchmarks.baseline_check results/baseline-check.json vma=RUN vae=RUN soft-attention=RUN gmn=RUN

Each RUN is a folder of `vma train`, all of the same number of updates. Protocol `disjoint`: no target is in memory.
For an optimal model of disjoint classes the NLL grows by log C over that of one class.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

import torch

from vma import Memory, load_model
from vma.data import load_dataset
from vma.episodes import EpisodeSampler
from vma.models import GenerativeModel
from vma.training.checkpoint import read_progress
from vma.training.runs import Run

CLASSES, TARGETS_IN_ALL, SAMPLES, SEED = (1, 2, 4, 8, 16), 128, 32, 0
SHOTS = {"vma": 4, "vae": 4, "soft-attention": 16, "gmn": 4}


@torch.no_grad()
def nll(model: GenerativeModel, classes: int, shots: int) -> dict[str, Any]:
    """Mean NLL over targets of unseen classes, K-sample bound, with the standard error over targets."""
    data = load_dataset("omniglot", "test", split="45-5", size=26)
    per_class = max(1, min(4, 32 // classes))
    sampler = EpisodeSampler(data, classes=classes, targets=per_class, shots=shots, seed=SEED)
    source, found = torch.Generator().manual_seed(SEED), []
    for step in range(TARGETS_IN_ALL // (classes * per_class)):
        episode = sampler.episode(step).tensors()
        memory = Memory.of(episode.memory)
        found += [-model.bound(x, memory, SAMPLES, generator=source) for x in episode.targets.split(8)]
    values = torch.cat(found)
    return {
        "classes": classes,
        "nll": float(values.mean()),
        "error": float(values.std()) / math.sqrt(len(values)),
        "targets": len(values),
    }


def sweep(kind: str, run: Run) -> dict[str, Any]:
    """The NLL of one run at every number of classes."""
    model = load_model(run.model_file)
    rows = [nll(model, classes, SHOTS[kind]) for classes in CLASSES]
    print(
        kind,
        *(f"C={row['classes']}: {row['nll']:.1f} ± {row['error']:.1f}" for row in rows),
        sep="  ",
        flush=True,
    )
    return {
        "model": kind,
        "preset": run.settings().preset,
        "updates": read_progress(run.checkpoint_file).update,
        "maps": run.settings().model.maps,
        "shots": SHOTS[kind],
        "rows": rows,
    }


def main(path: Path, runs: dict[str, Path]) -> None:
    """Measure all runs and write the JSON."""
    torch.set_num_threads(1)
    found = [sweep(kind, Run(folder)) for kind, folder in runs.items()]
    about = {"data": "omniglot 45-5 test, 26x26", "protocol": "disjoint", "samples": SAMPLES, "seed": SEED}
    path.write_text(json.dumps({**about, "models": found}, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]), {k: Path(v) for k, v in (word.split("=", 1) for word in sys.argv[2:])})
