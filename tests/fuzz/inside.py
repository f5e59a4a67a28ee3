"""The long run on models, memories, checkpoints, files of runs and settings: `python -m tests.fuzz.inside`."""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro

from tests.fuzz import run_targets
from tests.helpers.fuzzing import Tally, Target, attack, peak

TARGETS: tuple[Target, ...] = run_targets.TARGETS
STEP = 100  # inputs of a kind before the next one's turn


@dataclass(frozen=True)
class Options:
    """How much.

    Attributes:
        inputs: In all.
        first: The first seed: another one gives other inputs.
        only: Kinds of input; all by default.
        out: Where to write what was done.
    """

    inputs: int = 1_000_000
    first: int = 0
    only: tuple[str, ...] = ()
    out: Path = Path("results/fuzz-inside.json")


def main(options: Options) -> int:
    """Attack every kind in turn, and write down what came of it after every round; return how much was found."""
    torch.set_num_threads(1)
    targets = [each for each in TARGETS if not options.only or each.name in options.only]
    tallies, began, seed = {each.name: Tally() for each in targets}, time.monotonic(), options.first
    while sum(tally.inputs for tally in tallies.values()) < options.inputs:
        for target in targets:
            attack(target, range(seed, seed + STEP), tallies[target.name])
        seed += STEP
        write(options, tallies, time.monotonic() - began)
    run_targets.clean_up()
    return sum(len(tally.findings) for tally in tallies.values())


def write(options: Options, tallies: dict[str, Tally], seconds: float) -> None:
    """What was done so far, as JSON."""
    content = {
        "command": f"python -m tests.fuzz.inside --inputs {options.inputs} --first {options.first}",
        "inputs": sum(tally.inputs for tally in tallies.values()),
        "findings": [f"{seed}: {what}" for tally in tallies.values() for seed, what in tally.findings],
        "seconds": round(seconds, 1),
        "peak_gigabytes": round(peak(), 2),
        "targets": {
            name: {"inputs": tally.inputs, "answered": tally.answered, "refused": tally.refused}
            for name, tally in tallies.items()
        },
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    sys.exit(min(1, main(tyro.cli(Options))))
