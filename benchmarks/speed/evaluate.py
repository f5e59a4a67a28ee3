"""The K-sample bound of many targets, against the textbook loop."""

import json as json_lines
import math
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from rich.table import Table
from torch import Tensor

from benchmarks.speed.measuring import Times, count_flops, interleaved, peak_memory, using_threads
from benchmarks.speed.report import Result, present, seconds, size, table
from benchmarks.speed.textbook_side import ROUNDED, TextbookSide
from benchmarks.speed.workload import Workload, few_shot_preset, source
from vma.checks import check_least, check_positive
from vma.evaluation.likelihood import bounds
from vma.kernels import compiled
from vma.reproduce.update_times import Clock

ROOT = Path(__file__).parents[2]  # from where the child finds this module
OURS, LAYERS = "vma", "vma, by layers"
LOOP, LAST = "textbook", "textbook, channels_last"
LAYOUTS = {LOOP: torch.contiguous_format, LAST: torch.channels_last}
SIDES = (OURS, LOOP)  # whose peak memory is measured
ROWS_AT_ONCE = 128  # of the textbook loop: as many as a training update has


@dataclass(frozen=True)
class Task:
    """One evaluation.

    Attributes:
        preset: A few-shot preset.
        maps: Feature maps.
        memory: |M|.
        targets: Targets.
        samples: K.
        threads: Threads of torch.
    """

    preset: str
    maps: int
    memory: int
    targets: int
    samples: int
    threads: int

    def workload(self) -> Workload:
        """The episode, the model and its reads."""
        settings = few_shot_preset(self.preset, self.maps)
        return Workload.of(settings, self.memory, self.targets, samples=self.samples)


def bench_evaluate(
    *,
    preset: str = "omniglot-fewshot-4",
    maps: int = 64,
    memory: tuple[int, ...] = (32, 2560),
    targets: int = 32,
    samples: int = 1000,
    textbook_targets: int = 2,
    threads: int = 1,
    repeats: int = 3,
    clock: Clock = "wall",
    json: bool = False,
) -> None:
    """Time the K-sample bound beside a loop over reads of the textbook implementation, and measure peak memory.

    The textbook's reads are timed on a few targets only, and their time is multiplied; its keys are computed once.

    Args:
        preset: A few-shot preset; glyphs stand in for its images.
        maps: Feature maps of every convolution.
        memory: |M|, one or more: --memory 32 2560.
        targets: Targets.
        samples: K.
        textbook_targets: How many of the targets the textbook's reads are timed on.
        threads: Threads of torch.
        repeats: Rounds, in each of which every side runs once.
        clock: wall, or cpu for a machine that others use too.
        json: Print the result as one line of JSON, last.
    """
    check_positive(memory=memory, textbook_targets=textbook_targets, repeats=repeats)
    check_least("samples", (samples,), 2)
    started = time.perf_counter()
    tasks = [Task(preset, maps, items, targets, samples, threads) for items in memory]
    with using_threads(threads):
        rows = [measure(task, min(textbook_targets, targets), repeats, clock) for task in tasks]
        slowest = min(rows, key=lambda row: row["speedup_vs_textbook"])
        found: Result = {
            "bench": "evaluate",
            "speedup_vs_textbook": slowest["speedup_vs_textbook"],
            "peak_memory_bytes": max((row["peak_memory_bytes"][OURS] or 0) for row in rows),
            "rows": rows,
            "settings": {**asdict(tasks[0]), "memory": memory, "repeats": repeats, "clock": clock,
                         "textbook_targets": textbook_targets},
            "seconds_in_all": time.perf_counter() - started,
        }  # fmt: skip
        present(found, shown(found), json)


def measure(task: Task, textbook_targets: int, repeats: int, clock: Clock) -> Result:
    """Time and peak memory of all sides at one |M|."""
    work = task.workload()
    loops = {name: TextbookLoop(work, textbook_targets, layout) for name, layout in LAYOUTS.items()}
    check_bounds(work, loops)
    sides: dict[str, Callable[[], object]] = {OURS: lambda: ours(work), LAYERS: lambda: by_layers(work)}
    for name, loop in loops.items():
        sides |= {keys_of(name): loop.keys, reads_of(name): loop.reads}
    factor = task.targets / textbook_targets
    times = with_loops(interleaved(sides, repeats, clock), factor)
    return {
        "memory": task.memory,
        "speedup_vs_textbook": times.ratio(LOOP, OURS),
        "speedup_vs_textbook_channels_last": times.ratio(LAST, OURS),
        "speedup_vs_layers": times.ratio(LAYERS, OURS),
        "speedup_of_layers_vs_textbook": times.ratio(LOOP, LAYERS),
        "speedup_in_each_round": times.ratios(LOOP, OURS),
        "seconds": {side: times.median(side) for side in (OURS, LAYERS, *LAYOUTS)},
        "flops": operations(work, loops[LOOP], factor),
        "peak_memory_bytes": {side: peak_in_child(task, side) for side in SIDES},
        **work.counts(),
    }


def keys_of(loop: str) -> str:
    """The name of what a loop does once."""
    return f"{loop}: keys"


def reads_of(loop: str) -> str:
    """The name of what a loop does for every read."""
    return f"{loop}: reads"


def with_loops(times: Times, factor: float) -> Times:
    """`times` with those of whole textbook loops: their keys, and `factor` times the reads that were timed."""
    seconds = dict(times.seconds)
    for loop in LAYOUTS:
        rounds = zip(seconds[keys_of(loop)], seconds[reads_of(loop)], strict=True)
        seconds[loop] = [keys + factor * reads for keys, reads in rounds]
    return Times(seconds)


def operations(work: Workload, loop: "TextbookLoop", factor: float) -> dict[str, float | int]:
    """Counted operations; ours are those of layers, as torch's counter does not see what Numba compiled."""
    return {
        OURS: count_flops(lambda: by_layers(work)),
        LOOP: count_flops(loop.keys) + factor * count_flops(loop.reads),
    }


def ours(work: Workload) -> Float[Tensor, "batch"]:
    """L of every target, as `vma evaluate` computes it."""
    samples = work.addresses.shape[1]
    return bounds(work.model, work.x, work.memory, samples, generator=source(work.trainer))


def by_layers(work: Workload) -> Float[Tensor, "batch"]:
    """The same without compiled loops."""
    with compiled.by_layers():
        return ours(work)


class TextbookLoop:
    """p(a) and q(a|x) once; then the reads; both `ROWS_AT_ONCE` at a time."""

    def __init__(
        self, work: Workload, targets: int, layout: torch.memory_format = torch.contiguous_format
    ) -> None:
        self.work, self.targets = work, targets
        self.book = TextbookSide(work, layout=layout).book

    @torch.no_grad()
    def keys(self) -> tuple:
        """p(a) and q(a|x) of all targets."""
        return self.book.addressing(self.work.x, self.work.memory.items, ROWS_AT_ONCE)

    @torch.no_grad()
    def reads(self) -> Float[Tensor, "reads"]:
        """log p(z|m) + log p(x|m,z) − log q(z|m,x) of every read of the first targets."""
        work, samples = self.work, self.work.addresses.shape[1]
        addresses = work.addresses[: self.targets].flatten()
        noise = work.noise[: self.targets].flatten(0, 1)
        target = torch.arange(self.targets).repeat_interleave(samples)
        found = []
        for part in range(0, len(addresses), ROWS_AT_ONCE):
            rows = slice(part, part + ROWS_AT_ONCE)
            x, m = work.x[target[rows]], work.memory.items[addresses[rows]]
            _, log_p_z, log_q_z, log_p_x = self.book.rows(x, m, noise[rows])
            found.append(log_p_z + log_p_x - log_q_z)
        return torch.cat(found)

    @torch.no_grad()
    def bounds(self) -> Float[Tensor, "targets"]:
        """L of the first targets."""
        p_a, q_a = self.keys()
        addresses = self.work.addresses
        of_addresses = (p_a.log_prob(addresses) - q_a.log_prob(addresses))[: self.targets]
        log_w = of_addresses + self.reads().unflatten(0, (self.targets, -1))
        return log_w.logsumexp(1) - math.log(addresses.shape[1])


def check_bounds(work: Workload, loops: dict[str, TextbookLoop]) -> None:
    """Raise an error unless all sides give the same bounds, but for rounding."""
    mine = ours(work)
    others = {LAYERS: by_layers(work)} | {name: loop.bounds() for name, loop in loops.items()}
    for side, theirs in others.items():
        difference = float((mine[: len(theirs)] - theirs).abs().max() / theirs.abs().max())
        if not difference < ROUNDED:
            raise AssertionError(
                f"The bounds of {side!r} differ from ours by {difference:.1e}: they are not of the same thing."
            )


def peak_in_child(task: Task, side: str) -> int | None:
    """Peak memory of a process of its own that evaluates once, with `side`'s code alone."""
    arguments = json_lines.dumps({"task": asdict(task), "side": side})
    command = [sys.executable, "-m", "benchmarks.speed.evaluate", arguments]
    child = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return json_lines.loads(child.stdout.splitlines()[-1])


def main(arguments: str) -> None:
    """The child of `peak_in_child`: evaluate once and print the peak."""
    given = json_lines.loads(arguments)
    task = Task(**given["task"])
    with using_threads(task.threads):
        work = task.workload()
        ours(work) if given["side"] == OURS else TextbookLoop(work, 1).bounds()
    print(json_lines.dumps(peak_memory()))


def least_and_most(row: Result) -> str:
    """The least and the largest speed-up of a round."""
    rounds = row["speedup_in_each_round"]
    return f"{min(rounds):.1f} to {max(rounds):.1f}"


def shown(found: Result) -> list[Table | str]:
    """A table and a sentence for each |M|."""
    settings = found["settings"]
    title = f"K = {settings['samples']} of {settings['targets']} targets, {settings['maps']} maps"
    return [part for row in found["rows"] for part in (table_of(row, title), said_of(row))]


def table_of(row: Result, title: str) -> Table:
    """The sides at one |M|."""
    rows = [
        [
            side,
            seconds(spent),
            f"{spent / row['seconds'][OURS]:.2f} ×",
            f"{row['flops'][side] / 1e9:,.1f}" if side in SIDES else "",
            size(row["peak_memory_bytes"][side] or 0) if side in SIDES else "",
        ]
        for side, spent in row["seconds"].items()
    ]
    return table(f"|M| = {row['memory']}, {title}", ("", "time", "beside vma", "GFLOP", "peak"), rows)


def said_of(row: Result) -> str:
    """The speed-ups at one |M|, and what was read."""
    return (
        f"By rounds: {row['speedup_vs_textbook']:.2f} × the speed of the textbook ({least_and_most(row)}), "
        f"{row['speedup_vs_textbook_channels_last']:.2f} × with channels_last, "
        f"{row['speedup_of_layers_vs_textbook']:.2f} × without compiled loops. {row['unique_pairs']} different "
        f"(target, address) pairs and {row['unique_items']} items among {row['reads']} reads.\n"
    )


if __name__ == "__main__":
    main(sys.argv[1])
