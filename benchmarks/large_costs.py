"""What a question to a memory on disk costs and loses: times beside going through all keys, in one run.

    python -m benchmarks.large_costs FOLDER 1000000 results/large-memories.json

FOLDER is that of `benchmarks.large_memories build` and `index`. One thread of torch and of faiss; times are those
of the thread, medians over the queries of 512 unseen characters. Searches are timed one after the other, as a
process that answers questions makes them, and some more each after a pass through all keys, when caches are cold.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import torch
from torch import Tensor

from benchmarks.large_memories import MODEL, READS, SEED, keep, mean_json, omniglot, queries_of
from vma.bounds import multi_sample_bound
from vma.data import load_dataset
from vma.fewshot import LargeMemory, TrainedModel, load
from vma.large import SearchedItems
from vma.large.verifying import nats_lost

TARGETS = 16  # whose bounds a new process says
IN_MEMORY = 2_000_000  # items whose keys are gone through in memory
TIMED, EXACT, BATCH = 512, 16, 64  # queries alone, those that go through all keys, and in a batch


def measure(folder: Path, items: int, out: Path) -> None:
    """One memory."""
    model, (x, _, _) = load(MODEL), omniglot()
    place = folder / f"memory-{items}"
    row = {"items": items, **json.loads((folder / f"build-{items}.json").read_text()), **apart(place)}
    memory = opened(model, place)
    row |= {"bytes_on_disk": size_of(place), "index_bytes": size_of(place / "index")}
    row |= times(memory.searched, queries_of(model, many_images()))
    queries = queries_of(model, x).numpy()
    for name, sharpness in (("plain", 1.0), ("sharp", memory.searched.sharpness)):
        lost = nats_lost(memory.snapshot, memory.index, np.float32(sharpness) * queries, memory.candidates)
        row |= {f"{name}_nats_lost": mean_json(lost.tolist()), f"{name}_most_nats_lost": float(lost.max())}
    row["nll"] = mean_json((-searched_bound(model, memory.searched, x)).tolist())
    row["plain_nll"] = mean_json(
        (-searched_bound(model, replace(memory.searched, sharpness=1.0), x)).tolist()
    )
    print(row, flush=True)
    keep(out, "rows", row)


def opened(model: TrainedModel, place: Path) -> LargeMemory:
    """The memory in a folder."""
    return LargeMemory(model.model, model.fingerprint, place)


def size_of(folder: Path) -> int:
    """Bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def many_images() -> Tensor:
    """Unseen characters of Omniglot."""
    images = load_dataset("omniglot", "test", split="45-5").images
    chosen = np.random.default_rng(SEED).choice(len(images), TIMED, replace=False)
    return torch.from_numpy(images[chosen]).float() / 255


@torch.no_grad()
def times(memory: SearchedItems, queries: Tensor) -> dict[str, float]:
    """Milliseconds of this thread for each query."""
    some, batch = queries[:EXACT].split(1), queries.split(BATCH)
    rows = {
        "searched_ms": [timed(memory.search, each) for each in queries.split(1)],
        "searched_of_64_ms": [timed(memory.search, each) / BATCH for each in batch],
        "exact_ms": [], "cold_ms": [],
    }  # fmt: skip
    whole = through_all(memory)
    for each in some:
        rows["exact_ms"].append(timed(whole, each))
        rows["cold_ms"].append(timed(memory.search, each))
    rows["exact_of_64_ms"] = [timed(whole, each) / BATCH for each in batch[:3]]
    found = {name: float(np.median(each)) for name, each in rows.items()}
    return found | {
        "searched_ms_upper_tenth": float(np.quantile(rows["searched_ms"], 0.9)),
        "faster": found["exact_ms"] / found["searched_ms"],
        "faster_of_64": found["exact_of_64_ms"] / found["searched_of_64_ms"],
    }


def through_all(memory: SearchedItems) -> Callable[[Tensor], Tensor]:
    """log softmax S over all items: keys are in one array in memory, or in files if they are too many for that."""
    if len(memory) <= IN_MEMORY:
        tables = [torch.from_numpy(memory.snapshot.keys.slice(0, len(memory)))]
    else:
        tables = [torch.from_numpy(table["keys"]) for table in memory.snapshot.tables]
    return lambda query: torch.cat([query @ keys.T for keys in tables], 1).log_softmax(-1)


def timed(work: Callable[[Tensor], Any], query: Tensor) -> float:
    """Milliseconds that this thread works."""
    begun = time.thread_time()
    work(query)
    return 1e3 * (time.thread_time() - begun)


@torch.no_grad()
def searched_bound(model: TrainedModel, memory: SearchedItems, x: Tensor) -> Tensor:
    """The bound at 64 reads of what a search finds."""
    source = torch.Generator().manual_seed(SEED)
    terms = (
        model.model.terms(each, memory, READS, sampling="stratified", generator=source) for each in x.split(1)
    )
    return torch.cat([multi_sample_bound(each) for each in terms])


def apart(place: Path) -> dict[str, float]:
    """What a new process needs to open the memory, and to answer."""
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.large_costs", str(place)], check=True, capture_output=True
    )
    return json.loads(made.stdout)


def open_here(place: Path) -> None:
    """Seconds until the first answer can be asked for, and what this process holds in memory of its own then."""
    model, x = load(MODEL), many_images()[:TARGETS]
    queries, before = queries_of(model, x), own_megabytes()
    begun, clock = time.process_time(), time.monotonic()
    memory = opened(model, place).searched
    memory.search(queries[:1])
    took = {"open_seconds": time.process_time() - begun, "open_clock_seconds": time.monotonic() - clock}
    took["open_megabytes"] = own_megabytes() - before
    searched_bound(model, memory, x)
    print(json.dumps(took | {"process_megabytes": own_megabytes()}))


def own_megabytes() -> float:
    """What this process holds that is not a file: of files, the system keeps as much as it has room for."""
    (line,) = (each for each in Path("/proc/self/status").read_text().splitlines() if "RssAnon" in each)
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    if len(sys.argv) == 2:
        open_here(Path(sys.argv[1]))
    else:
        measure(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
