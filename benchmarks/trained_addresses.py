"""How sharp a trained model's q(a|x) is, and how many different items it reads: what `vma bench` imitates.

    python -m benchmarks.trained_addresses RUN results/trained-addresses.json

RUN is the folder of a few-shot model. Omniglot's test classes, 8 of them with 4 targets each, in memories of 8 to
144 classes with 4 or 16 items, protocol `disjoint`; means over some draws of classes and images.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

from vma.evaluation.nested import NestedMemories
from vma.evaluation.subject import Subject, open_subject
from vma.files import write_atomically
from vma.memory import Memory
from vma.model import VMA
from vma.reads import HardGather, independent
from vma.training.runs import Run

MEMORIES = ((8, 4), (32, 4), (144, 4), (32, 16), (144, 16))  # classes and items of each
TARGETS, CLASSES, SEEDS, SAMPLES = 4, 8, 8, (4, 1000)


@torch.no_grad()
def look(subject: Subject, classes: int, shots: int, seed: int) -> dict[str, float]:
    """H(q(a|x)) of one draw, and how many of its reads differ."""
    block = NestedMemories(subject.dataset, TARGETS, shots, seed).block(classes, 0, shots)
    assert block.memory is not None
    assert isinstance(subject.model, VMA)
    x, memory = block.targets[: TARGETS * CLASSES], Memory(block.memory.items)
    q_a, source = subject.model.posterior(x, memory), torch.Generator().manual_seed(seed)
    found = {"nats": float(q_a.entropy().mean())}
    for samples in SAMPLES:
        rows = HardGather.of(independent(q_a, samples, memory, source).addresses)
        found |= {f"pairs_{samples}": rows.pairs, f"items_{samples}": len(rows.items)}
    return found


def size(subject: Subject, classes: int, shots: int) -> dict[str, Any]:
    """Means over all draws of a memory of this size."""
    draws = [look(subject, classes, shots, seed) for seed in range(SEEDS)]
    means = {name: sum(draw[name] for draw in draws) / SEEDS for name in draws[0]}
    return {"memory": classes * shots, "classes": classes, "shots": shots, **means}


def corners(rows: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Different addresses among K reads of a target, with the smallest and the largest memory: what is imitated."""
    targets = TARGETS * CLASSES
    return {f"{reads}": [row[f"pairs_{reads}"] / targets for row in (rows[0], rows[-1])] for reads in SAMPLES}


def main(run: Run, path: Path) -> None:
    """All sizes, and the JSON."""
    torch.set_num_threads(1)
    subject = open_subject(run)
    rows = [size(subject, classes, shots) for classes, shots in MEMORIES]
    asked = {
        "protocol": "disjoint",
        "targets": TARGETS * CLASSES,
        "draws": SEEDS,
        "pairs_of_a_target": corners(rows),
    }
    write_atomically(path, json.dumps({**subject.about, **asked, "rows": rows}, indent=1).encode())
    for row in rows:
        print({name: round(value, 2) for name, value in row.items()}, flush=True)
    print(asked["pairs_of_a_target"])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(Run(Path(sys.argv[1])), Path(sys.argv[2]))
