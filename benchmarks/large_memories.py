"""Memories of up to a million items: what a search costs and loses, and what a memory of that size is worth.

    python -m benchmarks.large_memories build FOLDER 1000000     # invented characters with Omniglot's among them
    python -m benchmarks.large_memories measure FOLDER 1000000 results/large-memories.json
    python -m benchmarks.large_memories figure results/large-memories.json docs/images/large-memories.png

FOLDER holds the blocks of `benchmarks.large_items` and gets a memory on disk for each size. Four drawings of each
of 96 unseen Omniglot characters (the data are those of VMA_DATA) are in memory, among so many invented characters;
the targets are other drawings of 48 of them. One thread; times of the two searches are taken in turn.
"""

import json
import math
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.large_items import BLOCK, MODEL, block, keys_of
from vma.addressing import AddressDistribution
from vma.bounds import multi_sample_bound
from vma.data import load_dataset
from vma.evaluation.growing_memories import GrowingMemories
from vma.evaluation.statistics import mean_of
from vma.fewshot import LargeMemory, TrainedModel, load
from vma.fewshot.large_memory import scores_of
from vma.files import write_atomically
from vma.large import SearchedItems, Writer, open_snapshot
from vma.large.indexing import open_index, save_index
from vma.large.verifying import nats_lost
from vma.reads import draw

CLASSES, TARGETS, SHOTS, READS, SEED = 96, 48, 4, 64, 0
TIMED = 48  # queries that are timed, one after the other
SIZES = (100, 1000, 10_000, 100_000, 1_000_000, 10_000_000)


def omniglot() -> tuple[Tensor, Tensor, np.ndarray]:
    """Targets, four items of the class of each, and the class of each item."""
    found = GrowingMemories(load_dataset("omniglot", "test", split="45-5"), 1, SHOTS, SEED).block(
        CLASSES, 0, SHOTS
    )
    assert found.memory is not None
    assert found.memory.labels is not None
    return found.targets[:TARGETS], found.memory.items, found.memory.labels.numpy()


def build(folder: Path, items: int) -> None:
    """The memory of so many items on disk, those of Omniglot first, and its index."""
    torch.set_num_threads(1)
    model, (_, real, labels) = load(MODEL), omniglot()
    place = folder / f"memory-{items}"
    if not place.exists():
        model.create_memory(place, index="faiss")
    levels = (real * 255).round().to(torch.uint8).numpy()
    begun = time.process_time()
    with Writer(place) as writer:
        if not writer.manifest.rows:
            write(writer, model, levels, keys_of(model, levels), [f"omniglot {label}" for label in labels])
        while writer.manifest.rows < items:
            done = writer.manifest.rows - len(levels)
            images, keys = block(folder, done // BLOCK)
            count = min(BLOCK, items - writer.manifest.rows)
            write(writer, model, images[:count], keys[:count], [None] * count)
        written = time.process_time() - begun
        begun = time.process_time()
        snapshot = open_snapshot(place)
        save_index(snapshot, open_index(snapshot))
    took = {"write_seconds": written, "index_seconds": time.process_time() - begun}
    write_atomically(folder / f"build-{items}.json", json.dumps(took).encode())
    print(took, flush=True)


def write(writer: Writer, model: TrainedModel, images: np.ndarray, keys: np.ndarray, labels: list) -> None:
    """Add images whose keys are known."""
    writer.add(images, keys, scores_of(model.model, torch.from_numpy(keys)), labels)


def grown(
    model: TrainedModel, memory: SearchedItems, x: Tensor, labels: np.ndarray, items: int
) -> dict[str, Any]:
    """NLL and mass of q(a|x) on a target's own class, in the memory of the first so many items; a is exact."""
    p_a, q_a = exact(model, memory, x, items)
    own = torch.from_numpy(np.arange(len(x))[:, None] == labels)
    mass = (q_a.log_probs[:, : len(labels)].exp() * own[:, : q_a.log_probs.shape[1]]).sum(1)
    bound = bound_of(model, memory, x, p_a, q_a)
    first = own[torch.arange(len(x)), q_a.log_probs[:, : len(labels)].argmax(1)]
    top = q_a.log_probs.argmax(1)
    right = first & (top < len(labels))
    values = {
        "nll": -bound,
        "own_class_mass": mass,
        "own_class_first": right.double(),
        "entropy": q_a.entropy(),
    }
    return {"items": items, **{name: mean_json(each.tolist()) for name, each in values.items()}}


@torch.no_grad()
def exact(
    model: TrainedModel, memory: SearchedItems, x: Tensor, items: int
) -> tuple[AddressDistribution, AddressDistribution]:
    """p(a) and q(a|x) over the first so many items, by going through all of them."""
    a = torch.arange(items)
    p_a = AddressDistribution.of_scores(memory.prior().log_prob(a).float())
    keys = torch.from_numpy(memory.snapshot.keys.slice(0, items))
    scores = model.model.addressing.similarity.scores(keys, model.model.addressing.queries(x))
    return p_a, AddressDistribution.of_scores(scores)


@torch.no_grad()
def bound_of(
    model: TrainedModel, memory: SearchedItems, x: Tensor, p_a: AddressDistribution, q_a: AddressDistribution,
    sampling: str = "stratified",
) -> Tensor:  # fmt: skip
    """The bound at 64 reads, where a is drawn from q(a|x) over all items."""
    source, parts = torch.Generator().manual_seed(SEED), []
    for i in range(len(x)):
        q = AddressDistribution(q_a.log_probs[i : i + 1])
        reads = draw(q, READS, None, sampling, source)  # type: ignore[arg-type]
        noise = torch.randn((1, READS, model.model.latent), generator=source)
        parts.append(multi_sample_bound(model.model.terms_at(x[i : i + 1], memory, p_a, q, reads, noise)))
    return torch.cat(parts)


@torch.no_grad()
def searched_bound(model: TrainedModel, memory: SearchedItems, x: Tensor, sampling: str) -> Tensor:
    """The bound at 64 reads of what a search finds."""
    source = torch.Generator().manual_seed(SEED)
    terms = [
        model.model.terms(x[i : i + 1], memory, READS, sampling=sampling, generator=source)
        for i in range(len(x))
    ]
    return torch.cat([multi_sample_bound(each) for each in terms])


def times(memory: SearchedItems, queries: np.ndarray) -> dict[str, float]:
    """Milliseconds of this thread for a query, searched and by going through all keys, in turn; medians."""
    keys = torch.from_numpy(memory.snapshot.keys.slice(0, memory.snapshot.rows)).T.contiguous().T
    rows: dict[str, list[float]] = {"searched": [], "exact": []}
    for query in torch.from_numpy(queries[:TIMED]):
        rows["searched"].append(timed(lambda query=query: memory.search(query[None])))
        rows["exact"].append(timed(lambda query=query: (query[None] @ keys.T).log_softmax(-1)))
    return {f"{name}_ms": float(np.median(each)) for name, each in rows.items()}


def timed(work: Any) -> float:
    """Milliseconds that this thread works."""
    begun = time.thread_time()
    work()
    return 1e3 * (time.thread_time() - begun)


def mean_json(values: list[float]) -> dict[str, float]:
    """A mean with its standard error."""
    found = mean_of(values, list(range(len(values))))
    return {"value": found.value, "error": found.error}


def opening(place: Path, model: TrainedModel) -> tuple[LargeMemory, float, float]:
    """The memory, seconds until the first answer can be asked for, and how many megabytes it took."""
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.thread_time()
    memory = LargeMemory(model.model, model.fingerprint, place)
    assert len(memory.searched) > 0
    seconds = time.thread_time() - begun
    return memory, seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def measure(folder: Path, most: int, out: Path) -> None:
    """All sizes up to `most` that were built."""
    torch.set_num_threads(1)
    model, (x, _, labels) = load(MODEL), omniglot()
    rows, growth = [], []
    for items in [each for each in SIZES if (folder / f"memory-{each}/memory.json").exists()]:
        memory, seconds, megabytes = opening(folder / f"memory-{items}", model)
        with torch.no_grad():
            queries = model.model.addressing.similarity.queries(model.model.addressing.queries(x)).numpy()
        row = {
            "items": items, "open_seconds": seconds, "open_megabytes": megabytes,
            "bytes_on_disk": sum(p.stat().st_size for p in memory.folder.rglob("*") if p.is_file()),
            **json.loads((folder / f"build-{items}.json").read_text()), **times(memory.searched, queries),
        }  # fmt: skip
        lost = nats_lost(memory.snapshot, memory.index, queries, memory.candidates)
        row |= {"nats_lost": mean_json(lost.tolist()), "most_nats_lost": float(lost.max())}
        p_a, q_a = exact(model, memory.searched, x, items)
        for sampling in ("independent", "stratified"):
            whole = bound_of(model, memory.searched, x, p_a, q_a, sampling)
            found = searched_bound(model, memory.searched, x, sampling)
            row[f"{sampling}_exact_minus_searched"] = mean_json((whole - found).tolist())
            row[f"{sampling}_searched_nll"] = mean_json((-found).tolist())
        rows.append(row)
        print(row, flush=True)
        if items == most:
            sizes = [len(labels), *(each for each in SIZES if len(labels) < each <= most)]
            growth = [grown(model, memory.searched, x, labels, each) for each in sizes]
    first, last = rows[0], rows[-1]
    exponent = math.log(last["searched_ms"] / first["searched_ms"]) / math.log(last["items"] / first["items"])
    answer = {
        "command": f"python -m benchmarks.large_memories measure FOLDER {most} {out}", "model": MODEL,
        "targets": len(x), "shots": SHOTS, "reads": READS, "seed": SEED, "threads": 1,
        "candidates": memory.candidates,
        "epsilon": memory.epsilon, "rows": rows, "growth": growth, "growth_exponent_of_a_query": exponent,
    }  # fmt: skip
    write_atomically(out, (json.dumps(answer, indent=1) + "\n").encode())


def figure(source: Path, out: Path) -> None:
    """NLL and own-class mass over |M|."""
    from matplotlib.figure import Figure

    rows = json.loads(source.read_text())["growth"]
    sizes = [row["items"] for row in rows]
    drawing = Figure(figsize=(8.4, 3.2), layout="constrained")
    left, right = drawing.subplots(1, 2)
    nll = [row["nll"]["value"] for row in rows]
    left.errorbar(sizes, nll, [row["nll"]["error"] for row in rows], marker="o", label="64 reads, a exact")
    left.plot(
        sizes, [nll[0] + math.log(size / sizes[0]) for size in sizes], "--", color="grey", label="+ log |M|"
    )
    left.set(xscale="log", xlabel="|M|", ylabel="nats", title="−log p(x|M) of unseen characters")
    left.legend(frameon=False)
    for name, text in (("own_class_mass", "mass of q(a|x)"), ("own_class_first", "first item right")):
        values, errors = ([row[name][part] for row in rows] for part in ("value", "error"))
        right.errorbar(sizes, values, errors, marker="o", label=text)
    right.set(xscale="log", xlabel="|M|", ylim=(0, 1), title="on the four items of its class")
    right.legend(frameon=False)
    drawing.savefig(out, dpi=120)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "build":
        build(Path(rest[0]), int(rest[1]))
    elif what == "measure":
        measure(Path(rest[0]), int(rest[1]), Path(rest[2]))
    else:
        figure(Path(rest[0]), Path(rest[1]))
