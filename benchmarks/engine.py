"""What a Milvus server costs beside the exact index: adding, asking in two ways, and coming back from a kill.

    python -m tools.alone python -m benchmarks.engine 50000 results/engine.json

Keys are unit vectors of 128 numbers around a thousand middles; queries are noisy keys. All ways of asking are timed
in turn, one query at a time, in one process; the server is one process on the same machine.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pymilvus
from tools.engine import Engine

from vma.files import write_atomically
from vma.index import Index, Place, milvus_server
from vma.index.exact import ExactIndex
from vma.index.milvus import MilvusIndex
from vma.large.indexing import PART

MATCHING, MIDDLES, NOISE, SHARPNESS, CANDIDATES, QUERIES, SEED = 128, 1000, 0.7, 20.0, 256, 48, 0
PATIENCE = 600.0  # seconds that a killed server is waited for


def keys_of(count: int) -> np.ndarray:
    """Unit vectors around some middles; the last ones are queries."""
    draw = np.random.default_rng(SEED)
    middles = draw.normal(size=(MIDDLES, MATCHING))
    keys = middles[draw.integers(0, MIDDLES, count)] + NOISE * draw.normal(size=(count, MATCHING))
    return (keys / np.linalg.norm(keys, axis=1, keepdims=True)).astype(np.float32)


def seconds(work: Callable[[], object]) -> float:
    """How long something takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def fill(index: Index, keys: np.ndarray) -> None:
    """Add all keys in parts, as a memory on disk does."""
    for part in np.array_split(np.arange(len(keys)), -(-len(keys) // PART)):
        index.add(part, keys[part], np.full(len(part), -1))


def timed(ours: MilvusIndex, exact: ExactIndex, queries: np.ndarray) -> dict[str, float]:
    """The median milliseconds of a question, asked in three ways in turn."""
    times: dict[str, list[float]] = {"strong": [], "session": [], "exact": []}
    for query in queries:
        ours.written += 1  # as if something had been written: the next question waits for it
        for name, index in (("strong", ours), ("session", ours), ("exact", exact)):
            times[name].append(seconds(lambda i=index, q=query: i.search(q[None], CANDIDATES)))  # type: ignore[misc]
    return {f"{name}_ms": 1000 * float(np.median(each)) for name, each in times.items()}


def lost(ours: Index, exact: Index, queries: np.ndarray) -> float:
    """Nats of softmax mass that the candidates of the server cover less than the exact ones, on average."""
    covered = [np.logaddexp.reduce(i.search(queries, CANDIDATES).scores, axis=1) for i in (exact, ours)]
    return float(np.mean(covered[0] - covered[1]))


def measure(items: int, out: Path) -> None:
    """All of it, into a JSON file."""
    milvus_server.SECONDS = PATIENCE
    every = keys_of(items + QUERIES)
    keys, queries = every[:items], SHARPNESS * every[items:]
    with tempfile.TemporaryDirectory() as folder:
        engine, row = Engine(Path(folder) / "data"), {}
        row["start_s"] = engine.start()
        nothing = np.full(items, -1)
        place = Place(
            Path(folder), MATCHING, items, keys.__getitem__, lambda: nothing, lambda n: keys[:n], engine.uri
        )
        ours, exact = MilvusIndex(place), ExactIndex(place)
        row["add_s"], row["exact_add_s"] = (
            seconds(lambda: fill(ours, keys)),
            seconds(lambda: fill(exact, keys)),
        )
        row["lists_s"] = seconds(ours.save)
        row |= timed(ours, exact, queries)
        row["nats_lost"] = lost(ours, exact, queries)
        engine.kill()
        row["start_after_kill_s"] = engine.start()
        row["first_answer_after_start_s"] = seconds(lambda: row.update(items_after_kill=ours.count()))
        engine.kill()
    about = {
        "command": f"python -m tools.alone python -m benchmarks.engine {items} {out}", "items": items,
        "matching": MATCHING, "middles": MIDDLES, "noise": NOISE, "sharpness": SHARPNESS, "seed": SEED,
        "candidates": CANDIDATES, "queries": QUERIES, "server": "2.3.5", "pymilvus": pymilvus.__version__,
    }  # fmt: skip
    write_atomically(out, (json.dumps({**about, **row}, indent=1) + "\n").encode())


if __name__ == "__main__":
    measure(int(sys.argv[1]), Path(sys.argv[2]))
