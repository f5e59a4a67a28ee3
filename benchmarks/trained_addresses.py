"""How many reads of a trained model differ, which `benchmarks.speed` imitates; also the entropy of its q(a|x).

    python -m benchmarks.trained_addresses RUN results/trained-addresses.json

RUN is the folder of a few-shot model. Omniglot's test classes, up to 8 of them with 4 targets each, in memories of
1 to 144 classes with 4 or 16 items, protocol `disjoint`; means over some draws of classes and images.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

from vma.evaluation.growing_memories import GrowingMemories
from vma.evaluation.json_values import plain
from vma.evaluation.trained_run import TrainedRun, open_run
from vma.files import write_atomically
from vma.memory import Memory
from vma.model import VMA
from vma.reads import HardGather, independent
from vma.runs.folder import Run

# Classes and items of each.
MEMORIES = ((1, 4), (2, 4), (4, 4), (8, 4), (32, 4), (144, 4), (32, 16), (144, 16))
TARGETS, CLASSES, SEEDS, SAMPLES = 4, 8, 32, (4, 32, 1000)


@torch.no_grad()
def look(trained: TrainedRun, classes: int, shots: int, seed: int) -> dict[str, float]:
    """H(q(a|x)) of one draw, how many addresses of a target's reads differ, and of all reads."""
    block = GrowingMemories(trained.dataset, TARGETS, shots, seed).block(classes, 0, shots)
    assert block.memory is not None
    assert isinstance(trained.model, VMA)
    x, memory = block.targets[: TARGETS * CLASSES], Memory(block.memory.items)
    q_a, source = trained.model.posterior(x, memory), torch.Generator().manual_seed(seed)
    found = {"nats": float(q_a.entropy().mean()), "targets": len(x)}
    for samples in SAMPLES:
        rows = HardGather.of(independent(q_a, samples, memory, source).addresses)
        found |= {f"pairs_{samples}": rows.pairs / len(x), f"items_{samples}": len(rows.items)}
    return found


def size(trained: TrainedRun, classes: int, shots: int) -> dict[str, Any]:
    """Means over all draws of a memory of this size."""
    draws = [look(trained, classes, shots, seed) for seed in range(SEEDS)]
    means = {name: sum(draw[name] for draw in draws) / SEEDS for name in draws[0]}
    return {"memory": classes * shots, "classes": classes, "shots": shots, **means}


def main(run: Run, path: Path) -> None:
    """All sizes, and the JSON."""
    torch.set_num_threads(1)
    trained = open_run(run)
    rows = [size(trained, classes, shots) for classes, shots in MEMORIES]
    asked = {"protocol": "disjoint", "draws": SEEDS}
    write_atomically(path, json.dumps({**plain(trained.about), **asked, "rows": rows}, indent=1).encode())
    for row in rows:
        print({name: round(value, 2) for name, value in row.items()}, flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(Run(Path(sys.argv[1])), Path(sys.argv[2]))
