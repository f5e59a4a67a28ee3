"""`make kills`: many kills of everything that keeps something; ends with code 1 at the first loss."""

import json
import random
import shlex
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tyro

from tests.kills.killing import kill_often
from tests.kills.scenarios import SCENARIOS
from vma.files import write_atomically

ROUND = 20  # kills of a scenario before the next one's turn


@dataclass(frozen=True)
class Options:
    """How many kills.

    Attributes:
        kills: In all.
        seed: Of their moments.
        only: What is killed, by the names of `SCENARIOS`; all of it by default.
        out: Where to write what was done; it is added to what is there.
    """

    kills: int = 1000
    seed: int = 0
    only: tuple[str, ...] = ()
    out: Path = Path("results/kills.json")


def main(options: Options) -> None:
    """Kill every scenario in turn, a few times each, and write down what was done after every round."""
    began, chance, done = time.monotonic(), random.Random(options.seed), 0
    known = read_known(options.out)
    known["commands"].append({"command": shlex.join(["python", "-m", "tests.kills", *sys.argv[1:]])})
    names = {each.name for each in SCENARIOS}
    with TemporaryDirectory(prefix="vma-kills-") as place:
        while done < options.kills:
            for scenario in (each for each in SCENARIOS if each.name in (options.only or names)):
                kills = kill_often(scenario, Path(place), min(ROUND, options.kills), chance)
                done += kills.kills
                add(known, scenario.name, asdict(kills))
                known["commands"][-1] |= {"kills": done, "seconds": round(time.monotonic() - began, 1)}
                write_atomically(options.out, json.dumps(known, indent=1).encode())
            print(f"{done} of {options.kills} kills", flush=True)


def read_known(path: Path) -> dict[str, Any]:
    """What was done before; nothing was lost, since the first loss ends it."""
    if path.exists():
        return json.loads(path.read_text())
    what = "SIGKILLs at random moments, one kind of work after the other"
    return {"what": what, "commands": [], "kills": 0, "lost": 0, "scenarios": {}}


def add(known: dict[str, Any], name: str, kills: dict[str, Any]) -> None:
    """Add the kills of a scenario to what is known."""
    known["kills"] += kills["kills"]
    before = known["scenarios"].get(name, {})
    known["scenarios"][name] = {key: merged(before.get(key), value) for key, value in kills.items()}


def merged(before: dict | int | None, new: dict | int) -> dict | int:
    """Counts added up."""
    if isinstance(new, int):
        return (before if isinstance(before, int) else 0) + new
    old = before if isinstance(before, dict) else {}
    return {name: old.get(name, 0) + new.get(name, 0) for name in {**old, **new}}


if __name__ == "__main__":
    main(tyro.cli(Options))
