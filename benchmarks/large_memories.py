"""Memories of up to ten million items: how they are built, and what one of that size is worth.

    python -m benchmarks.large_memories build FOLDER 1000000     # invented characters with Omniglot's among them
    python -m benchmarks.large_memories index FOLDER 1000000
    python -m benchmarks.large_costs FOLDER 1000000 results/large-memories.json
    python -m benchmarks.large_memories grow FOLDER 1000000 results/large-memories.json
    python -m benchmarks.large_memories figure results/large-memories.json docs/images/large-memories.png

FOLDER holds the blocks of `benchmarks.large_items` and gets a memory on disk for each size. Four drawings of each
of 96 unseen Omniglot characters (the data are those of VMA_DATA) are in memory, among so many invented characters;
the targets are other drawings of 48 of them. All goes on where it was ended.
"""

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from benchmarks.large_items import BLOCK, MODEL, block, keys_of, varied
from vma.addressing import AddressDistribution
from vma.bounds import multi_sample_bound
from vma.data import load_dataset
from vma.evaluation.growing_memories import GrowingMemories
from vma.evaluation.statistics import mean_of
from vma.fewshot import LargeMemory, TrainedModel, load
from vma.fewshot.large_memory import scores_of
from vma.files import write_atomically
from vma.index.exact import ExactIndex
from vma.large import SearchedItems, Writer, open_snapshot
from vma.large.indexing import discard, open_index, save_index
from vma.large.searched import CANDIDATES
from vma.proposals import EPSILON
from vma.reads import draw

CLASSES, TARGETS, SHOTS, READS, SEED = 96, 48, 4, 64, 0
SIZES = (1000, 10_000, 100_000, 1_000_000, 10_000_000)
INDEXED = 100_000  # items from which a query's cost is followed
AT_ONCE, PART = 8, 65_536  # targets, and keys, that are compared at a time


def omniglot() -> tuple[Tensor, Tensor, np.ndarray]:
    """Targets, four items of the class of each, and the class of each item."""
    found = GrowingMemories(load_dataset("omniglot", "test", split="45-5"), 1, SHOTS, SEED).block(
        CLASSES, 0, SHOTS
    )
    assert found.memory is not None
    assert found.memory.labels is not None
    return found.targets[:TARGETS], found.memory.items, found.memory.labels.numpy()


def build(folder: Path, items: int, drawn: int | None = None) -> None:
    """The memory of so many items on disk, those of Omniglot first.

    Blocks from `drawn` on are not drawn: their keys are made from those of the drawn ones (`large_items.varied`).
    """
    model, (_, real, labels) = load(MODEL), omniglot()
    place, last = folder / f"memory-{items}", drawn or -(-items // BLOCK)
    if not place.exists():
        model.create_memory(place, index="faiss")
    levels = (real * 255).round().to(torch.uint8).numpy()
    begun = time.process_time()
    with Writer(place) as writer:
        if not writer.manifest.rows:
            write(writer, model, levels, keys_of(model, levels), [f"omniglot {label}" for label in labels])
        while writer.manifest.rows < items:
            number = (writer.manifest.rows - len(levels)) // BLOCK
            images, keys = block(folder, number) if number < last else varied(folder, number % last, number)
            count = min(BLOCK, items - writer.manifest.rows)
            write(writer, model, images[:count], keys[:count], [None] * count)
    built = folder / f"build-{items}.json"
    before = about(built)
    seconds = before.get("write_seconds", 0.0) + time.process_time() - begun
    took = {"drawn": min(items, last * BLOCK + len(levels)), "write_seconds": seconds}
    write_atomically(built, json.dumps(before | took).encode())
    print(took, flush=True)


def write(writer: Writer, model: TrainedModel, images: np.ndarray, keys: np.ndarray, labels: list) -> None:
    """Add images whose keys are known."""
    writer.add(images, keys, scores_of(model.model, torch.from_numpy(keys)), labels)


def index(folder: Path, items: int) -> None:
    """Build the index, and fit how sharply reads go to what it finds; in seconds of all cores together."""
    model, place, built = load(MODEL), folder / f"memory-{items}", folder / f"build-{items}.json"
    begun, clock = time.process_time(), time.monotonic()
    with Writer(place):
        discard(place)
        snapshot = open_snapshot(place)
        save_index(snapshot, open_index(snapshot))
    took = {"index_seconds": time.process_time() - begun, "index_clock_seconds": time.monotonic() - clock}
    begun = time.process_time()
    took["sharpness"] = LargeMemory(model.model, model.fingerprint, place).sharpen()
    took["sharpen_seconds"] = time.process_time() - begun
    write_atomically(built, json.dumps(about(built) | took).encode())
    print(took, flush=True)


def grow(folder: Path, most: int, out: Path) -> None:
    """What a memory of more and more items is worth, with a over all of them."""
    model, (x, _, labels) = load(MODEL), omniglot()
    snapshot = open_snapshot(folder / f"memory-{most}")
    memory = SearchedItems(
        snapshot, ExactIndex(snapshot.place()), snapshot.prior
    )  # all items are gone through
    own = torch.from_numpy(np.arange(len(x))[:, None] == labels)
    known = {row["items"] for row in about(out).get("growth", [])}
    for items in (len(labels), *(each for each in SIZES if each <= most)):
        if items not in known:
            parts = zip(x.split(AT_ONCE), own.split(AT_ONCE), strict=True)
            found = [grown(model, memory, some, theirs, items) for some, theirs in parts]
            values = {name: torch.cat([each[name] for each in found]).tolist() for name in found[0]}
            keep(out, "growth", {"items": items, **{name: mean_json(each) for name, each in values.items()}})
            print(items, flush=True)


def grown(
    model: TrainedModel, memory: SearchedItems, x: Tensor, own: Bool[Tensor, "batch first"], items: int
) -> dict[str, Tensor]:
    """NLL and mass of q(a|x) on a target's own class, in the memory of the first so many items; a is exact."""
    p_a, q_a = exact(model, memory, x, items)
    first = q_a.log_probs[:, : own.shape[1]]
    best, top = first.max(1)
    return {
        "nll": -bound_of(model, memory, x, p_a, q_a),
        "own_class_mass": (first.exp() * own).sum(1),
        "own_class_first": (own.gather(1, top[:, None])[:, 0] & (best == q_a.log_probs.amax(1))).double(),
        "entropy": q_a.entropy(),
    }


@torch.no_grad()
def exact(
    model: TrainedModel, memory: SearchedItems, x: Tensor, items: int
) -> tuple[AddressDistribution, AddressDistribution]:
    """p(a) and q(a|x) over the first so many items, by going through all of them."""
    p_a = AddressDistribution.of_scores(memory.prior().log_prob(torch.arange(items)).float())
    queries, scores = queries_of(model, x), torch.empty(len(x), items)
    for first in range(0, items, PART):
        keys = torch.from_numpy(memory.snapshot.keys.slice(first, min(first + PART, items)))
        scores[:, first : first + len(keys)] = queries @ keys.T
    return p_a, AddressDistribution.of_scores(scores)


@torch.no_grad()
def queries_of(model: TrainedModel, x: Tensor) -> Tensor:
    """q of every image."""
    addressing = model.model.addressing
    return addressing.similarity.queries(addressing.queries(x))


@torch.no_grad()
def bound_of(
    model: TrainedModel, memory: SearchedItems, x: Tensor, p_a: AddressDistribution, q_a: AddressDistribution
) -> Tensor:
    """The bound at 64 reads, where a is drawn from q(a|x) over all items."""
    source, parts = torch.Generator().manual_seed(SEED), []
    for i in range(len(x)):
        q = AddressDistribution(q_a.log_probs[i : i + 1])
        reads = draw(q, READS, None, "stratified", source)  # type: ignore[arg-type]
        noise = torch.randn((1, READS, model.model.latent), generator=source)
        parts.append(multi_sample_bound(model.model.terms_at(x[i : i + 1], memory, p_a, q, reads, noise)))
    return torch.cat(parts)


def mean_json(values: list[float]) -> dict[str, float]:
    """A mean with its standard error."""
    found = mean_of(values, list(range(len(values))))
    return {"value": found.value, "error": found.error}


def about(out: Path) -> dict[str, Any]:
    """What is known already."""
    return json.loads(out.read_text()) if out.exists() else {}


def keep(out: Path, name: str, row: dict[str, Any]) -> None:
    """Write one more row, in place of that for as many items."""
    known = about(out)
    rows = [each for each in known.get(name, []) if each["items"] != row["items"]]
    known[name] = sorted([*rows, row], key=lambda each: each["items"])
    large = [each for each in known.get("rows", []) if each["items"] >= INDEXED]
    if len(large) > 1:
        cost, size = (math.log(large[-1][key] / large[0][key]) for key in ("searched_ms", "items"))
        known["growth_exponent_of_a_query"] = cost / size
    settings = {
        "command": f"python -m benchmarks.large_costs FOLDER ITEMS {out}; "
        f"python -m benchmarks.large_memories grow FOLDER ITEMS {out}",
        "model": MODEL, "targets": TARGETS, "shots": SHOTS, "reads": READS, "seed": SEED, "threads": 1,
        "candidates": CANDIDATES, "epsilon": EPSILON,
    }  # fmt: skip
    write_atomically(out, (json.dumps(settings | known, indent=1) + "\n").encode())


def figure(source: Path, out: Path) -> None:
    """NLL and own-class mass over |M|."""
    from matplotlib.figure import Figure

    found = json.loads(source.read_text())
    rows = found["growth"]
    sizes = [row["items"] for row in rows]
    drawing = Figure(figsize=(8.4, 3.2), layout="constrained")
    left, right = drawing.subplots(1, 2)
    for name, which, text in (("growth", "nll", "a over all items"), ("rows", "nll", "searched, sharpened")):
        several, line = found[name], [row[which]["value"] for row in found[name]]
        errors = [row[which]["error"] for row in several]
        left.errorbar([row["items"] for row in several], line, errors, marker="o", label=f"{text}, 64 reads")
    start = rows[0]["nll"]["value"]
    left.plot(
        sizes, [start + math.log(size / sizes[0]) for size in sizes], "--", color="grey", label="+ log |M|"
    )
    left.set(xscale="log", xlabel="|M|", ylabel="nats", title="−log p(x|M) of unseen characters")
    left.legend(frameon=False, fontsize="small")
    for name, text in (("own_class_mass", "mass of q(a|x)"), ("own_class_first", "first item right")):
        values, errors = ([row[name][part] for row in rows] for part in ("value", "error"))
        right.errorbar(sizes, values, errors, marker="o", label=text)
    right.set(xscale="log", xlabel="|M|", ylim=(0, 1), title="on the four items of its class")
    right.legend(frameon=False)
    drawing.savefig(out, dpi=120)


if __name__ == "__main__":
    torch.set_num_threads(1)
    what, where, *rest = sys.argv[1:]
    if what == "build":
        build(Path(where), *map(int, rest))
    elif what == "index":
        index(Path(where), int(rest[0]))
    elif what == "grow":
        grow(Path(where), int(rest[0]), Path(rest[1]))
    else:
        figure(Path(where), Path(rest[0]))
