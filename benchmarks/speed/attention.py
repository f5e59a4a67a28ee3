"""Hard and soft reads as the memory grows."""

import time
from collections.abc import Sequence

import numpy as np

from benchmarks.speed.measuring import count_flops, interleaved, using_threads
from benchmarks.speed.report import Result, present, seconds, table
from benchmarks.speed.workload import Workload, few_shot_preset
from vma.checks import check_positive
from vma.reproduce.update_times import HARD, SOFT, Clock, crossing_of, updates
from vma.runs.settings import TrainSettings


def bench_attention(
    *,
    preset: str = "omniglot-fewshot-4",
    maps: int = 64,
    memory: tuple[int, ...] = (8, 16, 32, 48, 64, 128, 256, 512, 1024),
    targets: int = 32,
    threads: int = 1,
    repeats: int = 3,
    clock: Clock = "wall",
    json: bool = False,
) -> None:
    """Time one update of VMA (the preset's K) and of soft attention (one sample) over sizes of the memory.

    Two variants of soft attention: it averages the raw items and computes the decoder's features of that image for
    every target, or it computes every item's features and averages them at every scale.

    Args:
        preset: A few-shot preset; glyphs stand in for its images.
        maps: Feature maps of every convolution.
        memory: Sizes |M|, rising: --memory 8 64 512.
        targets: Targets of the update.
        threads: Threads of torch.
        repeats: Rounds, in each of which every side runs once.
        clock: wall, or cpu for a machine that others use too.
        json: Print the result as one line of JSON, last.
    """
    check_positive(memory=memory, repeats=repeats)
    started = time.perf_counter()
    settings = few_shot_preset(preset, maps)
    with using_threads(threads):
        rows = [measure(settings, items, targets, repeats, clock) for items in memory]
        times = {row["memory"]: row["seconds"] for row in rows}
        found: Result = {
            "bench": "attention",
            **{f"crossing_{kind}": crossing_of(times, name) for name, kind in SOFT.items()},
            "growth": {name: growth(rows, name) for name in (HARD, *SOFT)},
            "rows": rows,
            "settings": {"preset": preset, "maps": maps, "memory": memory, "targets": targets,
                         "samples": settings.samples, "repeats": repeats, "clock": clock},
            "seconds_in_all": time.perf_counter() - started,
        }  # fmt: skip
        present(found, shown(found), json)


def measure(settings: TrainSettings, items: int, targets: int, repeats: int, clock: Clock) -> Result:
    """Seconds and operations of one update of each model at one |M|."""
    sides = updates(settings, items, targets)
    flops = {name: count_flops(update) for name, update in sides.items()}
    times = interleaved(sides, repeats, clock)
    return {
        "memory": items,
        "seconds": {name: times.median(name) for name in sides},
        "flops": flops,
        **Workload.of(settings, items, targets).counts(),
    }


def growth(rows: list[Result], name: str) -> dict[str, float]:
    """What an update costs in any case, and for every item more."""
    if len(rows) < 2:
        return {}
    found: dict[str, float] = {}
    for kind in ("seconds", "flops"):
        pair = fixed_and_per_item([row["memory"] for row in rows], [row[kind][name] for row in rows])
        found |= {f"fixed_{kind}": pair[0], f"{kind}_per_item": pair[1]}
    return found


def fixed_and_per_item(sizes: Sequence[int], costs: Sequence[float | int]) -> tuple[float, float]:
    """(a, b) of cost ≈ a + b · size, by least squares of the relative errors."""
    weights = 1 / np.asarray(costs, dtype=float)
    slope, fixed = np.polyfit(sizes, costs, 1, w=weights)
    return float(fixed), float(slope)


def shown(found: Result) -> list:
    """The table of a result, and what crosses."""
    names = (HARD, *SOFT)
    rows = [
        [
            f"{row['memory']}",
            *(seconds(row["seconds"][name]) for name in names),
            *(f"{row['flops'][name] / 1e9:.1f}" for name in names),
        ]
        for row in found["rows"]
    ]
    settings = found["settings"]
    title = f"one update, {settings['maps']} maps, {settings['targets']} targets: time, and GFLOP"
    head = ("|M|", f"{HARD}, K = {settings['samples']}", *SOFT, HARD, *SOFT)
    return [
        table(title, head, rows),
        *(sentence(name, found[f"crossing_{kind}"]) for name, kind in SOFT.items()),
    ]


def sentence(name: str, size: float | None) -> str:
    """Where VMA becomes the faster one."""
    if size is None:
        return f"{name}: not slower than VMA up to the largest memory."
    return f"{name}: VMA is faster from |M| ≈ {size:.0f}."
