"""q(a|x) and K addresses from cached keys, as |M| grows, against memory bandwidth."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from benchmarks.speed.measuring import interleaved, peak_of_tensors, using_threads
from benchmarks.speed.report import Result, present, seconds, size, table
from vma.addressing import AddressDistribution
from vma.checks import check_positive
from vma.reproduce.update_times import Clock
from vma.similarity import NORMALIZED_KEY

LARGE = 10_000  # from here on a query is more than the overhead of calling torch


@dataclass(frozen=True)
class Query:
    """Queries to a memory whose keys are known.

    Attributes:
        keys: k_a.
        e: Embeddings of the targets.
        samples: K.
    """

    keys: Float[Tensor, "memory matching"]
    e: Float[Tensor, "batch matching"]
    samples: int

    @torch.no_grad()
    def __call__(self) -> Tensor:
        """K addresses of each target, and log q(a|x) of all of M on the way."""
        scores = NORMALIZED_KEY.scores(self.keys, self.e)
        return AddressDistribution.of_scores(scores).sample(self.samples)


def bench_addressing(
    *,
    memory: tuple[int, ...] = (100, 1000, 10_000, 100_000, 1_000_000),
    targets: tuple[int, ...] = (1, 32),
    matching: int = 128,
    samples: int = 4,
    threads: int = 1,
    repeats: int = 7,
    clock: Clock = "wall",
    json: bool = False,
) -> None:
    """Time addressing alone: similarities to cached keys, log-softmax and K draws, beside reading the keys once.

    Args:
        memory: Sizes |M|, rising: --memory 1000 100000.
        targets: Queries at a time, one or more numbers.
        matching: Size of the matching space.
        samples: K.
        threads: Threads of torch.
        repeats: Rounds.
        clock: wall, or cpu for a machine that others use too.
        json: Print the result as one line of JSON, last.
    """
    check_positive(memory=memory, targets=targets, matching=matching, samples=samples, repeats=repeats)
    started = time.perf_counter()
    with using_threads(threads):
        rows = [
            measure(items, batch, matching, samples, repeats, clock) for items in memory for batch in targets
        ]
        found: Result = {
            "bench": "addressing",
            "bytes_per_second": rows[-1]["bytes_per_second"],
            "growth_exponent": {str(batch): exponent(rows, batch) for batch in targets},
            "rows": rows,
            "settings": {"memory": memory, "targets": targets, "matching": matching, "samples": samples,
                         "repeats": repeats, "clock": clock, "exponent_from": LARGE},
            "seconds_in_all": time.perf_counter() - started,
        }  # fmt: skip
        present(found, shown(found), json)


def measure(items: int, batch: int, matching: int, samples: int, repeats: int, clock: Clock) -> Result:
    """Time and memory of one query among `batch` at a time, and the time to read the keys once for all of them."""
    source = torch.Generator().manual_seed(0)
    keys = torch.randn(items, matching, dtype=torch.float32, generator=source)
    e = torch.randn(batch, matching, dtype=torch.float32, generator=source)
    by_coordinate = functional.normalize(keys, dim=-1).T.contiguous().T  # as a `KeyedMemory` keeps them
    query = Query(by_coordinate, e, samples)
    calls = max(1, 2000 // items)  # a clock cannot time microseconds
    sides: dict[str, Callable[[], object]] = {"query": query, "read": query.keys.sum}
    times = interleaved({name: repeated(run, calls) for name, run in sides.items()}, repeats, clock)
    each, limit = (times.median(name) / calls / batch for name in sides)
    return {
        "memory": items,
        "targets": batch,
        "seconds_per_query": each,
        "bytes_per_query": peak_of_tensors(query) / batch,
        "limit_seconds": limit,
        "fraction_of_bandwidth": times.ratio("read", "query"),
        "bytes_per_second": keys.numel() * keys.element_size() / (limit * batch),
    }


def repeated(run: Callable[[], object], calls: int) -> Callable[[], object]:
    """`run`, so many times."""
    return lambda: [run() for _ in range(calls)]


def exponent(rows: list[Result], batch: int) -> float | None:
    """b of seconds ≈ a · |M|^b over large memories; None where there are fewer than two."""
    large = [row for row in rows if row["targets"] == batch and row["memory"] >= LARGE]
    if len(large) < 2:
        return None
    return growth_exponent([row["memory"] for row in large], [row["seconds_per_query"] for row in large])


def growth_exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """b of seconds ≈ a · size^b, by least squares of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def shown(found: Result) -> list:
    """The table of a result, and how it grows."""
    rows = [
        [
            f"{row['memory']:,}".replace(",", " "),
            f"{row['targets']}",
            seconds(row["seconds_per_query"]),
            seconds(row["limit_seconds"]),
            f"{row['fraction_of_bandwidth']:.2f}",
            size(row["bytes_per_query"]),
        ]
        for row in found["rows"]
    ]
    head = ("|M|", "at a time", "time per query", "keys read once", "share of bandwidth", "memory per query")
    growing = ", ".join(
        f"{value:.2f} with {batch} at a time" for batch, value in found["growth_exponent"].items() if value
    )
    return [
        table("addressing with cached keys", head, rows),
        f"Bandwidth {size(found['bytes_per_second'])}/s."
        + (f" Time grows as |M| to the power {growing} (|M| ≥ {LARGE})." if growing else ""),
    ]
