"""The long run on files, pictures, requests and labels: `python -m tests.fuzz.outside --inputs 1000000`.

It goes on where the last one stopped, after it has tried again what failed.
Every batch is a process of its own with limits of memory and time, so that
one that is killed names its input.
"""

import argparse
import json
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from tests.fuzz.mutation import mutated
from tests.fuzz.outside_targets import SERVED, TARGETS, outcome
from tests.helpers.memory_limits import MEGABYTE, resident
from vma.files import write_atomically

BATCH = 500  # inputs of one process
MEGABYTES = 2048  # that an input may take
CPU_SECONDS = 20.0  # that it may take
RESULTS = Path("results/fuzz-outside.json")
# How many of a hundred inputs each target gets: what is quick gets more.
SHARES = {
    "picture": 10, "archive": 15, "array": 15, "gzip": 10, "matlab": 20, "memory": 10, "label": 15,
    "request": 5,
}  # fmt: skip


class TooSlowError(Exception):
    """An input that takes too long."""


def too_slow(*_: object) -> None:
    """Called when the time of an input is over."""
    raise TooSlowError


def batch(pipe: Any, name: str, seed: int, start: int, count: int, folder: Path) -> None:
    """In the child: inputs one after the other; each is announced before, and told about after."""
    limit = resident() + MEGABYTES * MEGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGPROF, too_slow)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries of pictures talk a lot
    SERVED.clear()  # its threads are not in this process
    target = TARGETS[name]
    examples = target.examples()
    for number in range(start, start + count):
        pipe.send((number, "begun", ""))
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        try:
            pipe.send((number, outcome(target, mutated(examples, f"{seed}:{name}:{number}"), folder), ""))
        except BaseException:
            pipe.send((number, "failure", traceback.format_exc(limit=-6)))
        signal.setitimer(signal.ITIMER_PROF, 0)


def run_batch(name: str, seed: int, start: int, count: int) -> tuple[int, dict[str, Any]]:
    """How many inputs were tried, and what came out; one that kills its process is the last of its batch."""
    found: dict[str, Any] = {"answer": 0, "sentence": 0, "failures": []}
    folder = Path(tempfile.mkdtemp(prefix="vma-fuzz-"))
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=batch, args=(theirs, name, seed, start, count, folder))
    child.start()
    theirs.close()
    number, what = start, ""
    try:
        while True:
            number, what, trace = ours.recv()
            if what == "failure":
                found["failures"].append({"input": number, "trace": trace})
            elif what != "begun":
                found[what] += 1
    except EOFError:
        child.join()
        if what == "begun":
            found["failures"].append({"input": number, "trace": f"killed: exit code {child.exitcode}"})
        elif number < start + count - 1:
            raise RuntimeError(f"{name} ended by itself: exit code {child.exitcode}") from None
    shutil.rmtree(folder, ignore_errors=True)
    return number + 1 - start, found


def still_failing(name: str, seed: int, failures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the failures that fail again."""
    return [again for each in failures for again in run_batch(name, seed, each["input"], 1)[1]["failures"]]


def add(total: dict[str, Any], tried: int, found: dict[str, Any]) -> None:
    """Add a batch to what is known of a target."""
    total["inputs"] += tried
    for key in ("answer", "sentence", "failures"):
        total[key] += found[key]


def main() -> None:
    """Run until there are as many inputs as asked for, or the minutes are over."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.outside", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="in all, with those of earlier runs")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--targets", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    known = (
        json.loads(options.out.read_text()) if options.out.exists() else {"seed": options.seed, "targets": {}}
    )
    if known["seed"] != options.seed:
        parser.error(f"{options.out} is of seed {known['seed']}: name another --out.")
    totals = known["targets"]
    for name in options.targets:
        totals.setdefault(name, {"inputs": 0, "answer": 0, "sentence": 0, "failures": []})
        totals[name]["failures"] = still_failing(name, options.seed, totals[name]["failures"])
    end = time.monotonic() + 60 * options.minutes
    while time.monotonic() < end and sum(each["inputs"] for each in totals.values()) < options.inputs:
        name = min(options.targets, key=lambda each: totals[each]["inputs"] / SHARES[each])
        add(totals[name], *run_batch(name, options.seed, totals[name]["inputs"], BATCH))
        write_atomically(options.out, json.dumps(known, indent=1).encode())
    for name, each in totals.items():
        print(f"{name:<8} {each['inputs']:>8} inputs: {each['answer']} answers, {each['sentence']} sentences, "
              f"{len(each['failures'])} failures")  # fmt: skip
    raise SystemExit(any(each["failures"] for each in totals.values()))


if __name__ == "__main__":
    main()
