"""One training update, against the textbook, against memories per target, against arithmetic."""

import time
from dataclasses import replace

import torch

from benchmarks.speed.measuring import SGEMM, MatrixProduct, Times, count_flops, interleaved, using_threads
from benchmarks.speed.report import Result, present, seconds, table
from benchmarks.speed.textbook_side import TextbookSide, check_equal
from benchmarks.speed.workload import Workload, few_shot_preset
from vma.checks import check_positive
from vma.reproduce.update_times import Clock

OURS, TEXTBOOK, TUNED, PER_TARGET = "vma", "textbook", "textbook, channels_last", "memory per target"
IN_ORDER = "vma, in reading order"


def bench_step(
    *,
    preset: str = "omniglot-fewshot-4",
    maps: int = 64,
    memory: int = 32,
    targets: int = 32,
    threads: int = 1,
    repeats: int = 10,
    matrix: int = 2048,
    clock: Clock = "wall",
    json: bool = False,
) -> None:
    """Time one update of a few-shot preset beside the same update of the textbook implementation.

    Args:
        preset: A few-shot preset; glyphs stand in for its images.
        maps: Feature maps of every convolution.
        memory: |M|.
        targets: Targets of the update.
        threads: Threads of torch.
        repeats: Rounds, in each of which every side runs once.
        matrix: Side of the matrices whose product gives the machine's rate.
        clock: wall, or cpu for a machine that others use too.
        json: Print the result as one line of JSON, last.
    """
    check_positive(repeats=repeats)
    started = time.perf_counter()
    settings = few_shot_preset(preset, maps)
    with using_threads(threads):
        work = Workload.of(settings, memory, targets)
        for per_target in (False, True):
            check_equal(work, per_target=per_target)
        sides = textbook_sides(work)
        model = replace(settings.model, likelihood="reading-order")
        in_order = Workload.of(replace(settings, model=model), memory, targets)
        runs = {OURS: work.update, IN_ORDER: in_order.update}
        runs |= {name: side.update for name, side in sides.items()}
        flops = {name: count_flops(run) for name, run in runs.items()}
        product = MatrixProduct(matrix)
        times = interleaved({**runs, SGEMM: product}, repeats, clock)
        found = result(work, times, flops, product)
        found["settings"] = {
            "preset": preset, "maps": maps, "memory": memory, "targets": targets, "samples": settings.samples,
            "repeats": repeats, "matrix": matrix, "clock": clock,
        }  # fmt: skip
        found["seconds_in_all"] = time.perf_counter() - started
        present(found, shown(found), json)


def textbook_sides(work: Workload) -> dict[str, TextbookSide]:
    """What an update is compared with."""
    return {
        TEXTBOOK: TextbookSide(work),
        TUNED: TextbookSide(work, layout=torch.channels_last),
        PER_TARGET: TextbookSide(work, per_target=True),
    }


def result(work: Workload, times: Times, flops: dict[str, int], product: MatrixProduct) -> Result:
    """All numbers of the comparison."""
    rate = product.flops / times.median(SGEMM)
    return {
        "bench": "step",
        "updates_per_second": 1 / times.median(OURS),
        "flops_per_update": flops[OURS],
        "speedup_vs_textbook": times.ratio(TEXTBOOK, OURS),
        "speedup_vs_textbook_channels_last": times.ratio(TUNED, OURS),
        "speedup_vs_per_target_memory": times.ratio(PER_TARGET, OURS),
        "reading_order_cost": times.ratio(IN_ORDER, OURS),
        "fraction_of_sgemm": flops[OURS] / product.flops * times.ratio(SGEMM, OURS),
        "sgemm_flops_per_second": rate,
        **work.counts(),
        "seconds": {name: times.median(name) for name in times.seconds},
        "flops": flops,
    }


def shown(found: Result) -> list:
    """The tables of a result."""
    rate = found["sgemm_flops_per_second"]
    rows = [
        [
            name,
            seconds(found["seconds"][name]),
            f"{found['seconds'][name] / found['seconds'][OURS]:.2f} ×",
            f"{flops / 1e9:.1f}",
            f"{flops / found['flops'][OURS]:.2f} ×",
            f"{flops / rate / found['seconds'][name]:.2f}",
        ]
        for name, flops in found["flops"].items()
    ]
    head = ("one update", "time", "beside vma", "GFLOP", "beside vma", "share of sgemm")
    settings = found["settings"]
    title = f"{settings['preset']}, {settings['maps']} maps, |M| = {settings['memory']}"
    return [
        table(title, head, rows),
        f"{found['unique_pairs']} different (target, address) pairs and {found['unique_items']} items among "
        f"{found['reads']} reads; matrix product {rate / 1e9:.1f} GFLOP/s.",
        f"By rounds: {found['speedup_vs_textbook']:.2f} × the speed of the textbook "
        f"({found['speedup_vs_textbook_channels_last']:.2f} × with channels_last), "
        f"{found['speedup_vs_per_target_memory']:.2f} × that of a memory per target, "
        f"{found['fraction_of_sgemm']:.2f} of the matrix product's rate. With ink in reading order, beyond "
        f"the paper, an update takes {found['reading_order_cost']:.2f} times as long.",
    ]
