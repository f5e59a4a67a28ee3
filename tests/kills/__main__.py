"""`make kills`: many kills of everything that keeps something; ends with code 1 at the first loss."""

import json
import random
import shlex
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import tyro

from tests.kills.killing import kill_often
from tests.kills.scenarios import SCENARIOS

ROUND = 20  # kills of a scenario before the next one's turn


@dataclass(frozen=True)
class Options:
    """How many kills.

    Attributes:
        kills: In all.
        seed: Of their moments.
        only: What is killed, by the names of `SCENARIOS`; all of it by default.
        out: Where to write what was done.
    """

    kills: int = 1000
    seed: int = 0
    only: tuple[str, ...] = ()
    out: Path = Path("results/kills.json")


def main(options: Options) -> None:
    """Kill every scenario in turn, a few times each, and write down what was done after every round."""
    began, chance = time.monotonic(), random.Random(options.seed)
    found: dict[str, dict] = {}
    names = {each.name for each in SCENARIOS}
    with TemporaryDirectory(prefix="vma-kills-") as place:
        while (done := sum(each["kills"] for each in found.values())) < options.kills:
            for scenario in (each for each in SCENARIOS if each.name in (options.only or names)):
                kills = asdict(kill_often(scenario, Path(place), min(ROUND, options.kills), chance))
                before = found.get(scenario.name, {})
                found[scenario.name] = {
                    name: merged(before.get(name), value) for name, value in kills.items()
                }
                write(options, found, time.monotonic() - began)
            print(f"{done} of {options.kills} kills", flush=True)


def merged(before: dict | int | None, new: dict | int) -> dict | int:
    """Counts added up."""
    if isinstance(new, int):
        return (before if isinstance(before, int) else 0) + new
    old = before if isinstance(before, dict) else {}
    return {name: old.get(name, 0) + new.get(name, 0) for name in {**old, **new}}


def write(options: Options, found: dict[str, dict], seconds: float) -> None:
    """What was done so far, as JSON."""
    content = {
        "command": shlex.join(["python", "-m", "tests.kills", *sys.argv[1:]]),
        "kills": sum(each["kills"] for each in found.values()),
        "lost": 0,  # the first loss ends it
        "seconds": round(seconds, 1),
        "scenarios": found,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    main(tyro.cli(Options))
