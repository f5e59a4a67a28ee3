"""A long run of attacks that goes on where the last one stopped, after it has tried again what failed."""

import argparse
import json
import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.fuzz.batches import Found, run_batch
from tests.fuzz.target import Target, made
from vma.files import write_atomically

BATCH = 2000  # inputs of one process
COUNTS = ("inputs", "answer", "sentence", "failures")


def run(module: str, targets: Sequence[Target]) -> int:
    """Run until there are as many more inputs as asked for, or the minutes are over; 1 if one of them failed."""
    options = parsed(module, targets)
    chosen = [target for target in targets if target.name in options.targets]
    known = read_known(options.out, f"python -m {module}", options.seed)
    for target in chosen:
        made(target, options.seed, 0)  # what all batches need is there before they are forked
        retry(
            target, options.seed, known["targets"].setdefault(target.name, asdict(Found()) | {"seconds": 0.0})
        )
    end, most = time.monotonic() + 60 * options.minutes, total(known) + options.inputs
    while time.monotonic() < end and total(known) < most:
        attack(min(chosen, key=lambda each: known["targets"][each.name]["inputs"] / each.share), known)
        write_atomically(options.out, json.dumps(known, indent=1).encode())
    show(known)
    return int(any(each["failures"] for each in known["targets"].values()))


def parsed(module: str, targets: Sequence[Target]) -> argparse.Namespace:
    """The options."""
    names = [target.name for target in targets]
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=__doc__)
    parser.add_argument("--inputs", type=int, default=500_000, help="after those of earlier runs")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--targets", nargs="*", default=names, choices=names)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(f"results/fuzz-{module.rsplit('.')[-1]}.json"))
    return parser.parse_args()


def read_known(path: Path, command: str, seed: int) -> dict[str, Any]:
    """What earlier runs have found."""
    if not path.exists():
        return {"command": shlex.join([*command.split(), "--seed", str(seed)]), "seed": seed, "targets": {}}
    known = json.loads(path.read_text())
    if known["seed"] != seed:
        raise SystemExit(f"{path} is of seed {known['seed']}: name another --out.")
    return known


def retry(target: Target, seed: int, sums: dict[str, Any]) -> None:
    """Try again what failed; what does not fail any more is mended, and counted as what it ends in."""
    failures, sums["failures"] = sums["failures"], []
    for each in failures:
        found = run_batch(target, seed, each["input"], 1)
        add(sums, found)
        sums["inputs"] -= 1


def attack(target: Target, known: dict[str, Any]) -> None:
    """One batch more of a target."""
    sums, began = known["targets"][target.name], time.monotonic()
    add(sums, run_batch(target, known["seed"], sums["inputs"], BATCH))
    sums["seconds"] = round(sums["seconds"] + time.monotonic() - began, 1)


def add(sums: dict[str, Any], found: Found) -> None:
    """Add a batch to what is known of a target."""
    for key in COUNTS:
        sums[key] += getattr(found, key)
    for key in ("slowest", "megabytes"):
        sums[key] = round(max(sums[key], getattr(found, key)), 2)


def total(known: dict[str, Any]) -> int:
    """How many inputs there were, of all kinds."""
    return sum(each["inputs"] for each in known["targets"].values())


def show(known: dict[str, Any]) -> None:
    """Say what came of every kind."""
    for name, each in known["targets"].items():
        counts = f"{each['answer']} answers, {each['sentence']} sentences, {len(each['failures'])} failures"
        print(f"{name:<10} {each['inputs']:>8} inputs: {counts}", flush=True)
