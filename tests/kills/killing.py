"""Kill children at random moments, and check after each kill what they leave."""

import random
import shutil
import signal
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from tests.helpers.small_runs import CHILDREN, attempt, child, ending
from tests.kills.scenarios import TRAINED, Scenario

STARTUP = 0.02  # seconds before which nothing can have been done
LONGEST = 60.0  # seconds until a first word


@dataclass
class Kills:
    """What was done.

    Attributes:
        kills: Children that were killed.
        ends: Children that came to their end.
        acknowledged: What they had said before.
        by_last_word: Kills by what the child had said last, such as `checkpoint`.
    """

    kills: int = 0
    ends: int = 0
    acknowledged: int = 0
    by_last_word: dict[str, int] = field(default_factory=dict)


def run(scenario: Scenario, folder: Path, pipe: Connection) -> None:
    """In the child: do the work, and say what is done."""
    scenario.work(folder, lambda line: pipe.send_bytes(line.encode()))


def heard(pipe: Connection) -> list[str]:
    """All that a child has said before it ended; a word that a kill cut short is not one."""
    lines = []
    try:
        while pipe.poll(0):
            lines.append(pipe.recv_bytes().decode())
    except (EOFError, OSError):
        pass
    return lines


def prepare(place: Path) -> None:
    """What several scenarios need beside their folders."""
    if not (place / "trained").exists():
        assert ending(child(attempt, place / "trained", TRAINED)) == 0


def kill_often(scenario: Scenario, place: Path, times: int, chance: random.Random) -> Kills:
    """Kill a scenario so many times, starting anew whenever it comes to its end."""
    prepare(place)
    whole, folder, done = place / f"{scenario.name} whole", place / scenario.name, Kills()
    shutil.rmtree(whole, ignore_errors=True)
    began = time.monotonic()
    assert once(scenario, whole, None)[1] == 0
    usual, said = time.monotonic() - began, []
    while done.kills < times:
        began = time.monotonic()
        at_work = chance.random() < 0.7  # else it may be killed while it begins, too
        latest = (0.6 if at_work else 1.2) * usual
        new, code = once(scenario, folder, chance.uniform(STARTUP, latest), at_work)
        said += new
        scenario.check(folder, said) if folder.exists() else None
        done.acknowledged += len(new)
        if code == -signal.SIGKILL:
            done.kills += 1
            word = new[-1].split()[0] if new else "nothing yet"
            done.by_last_word[word] = done.by_last_word.get(word, 0) + 1
            continue
        assert code == 0, f"{scenario.name} ended with {code} after {new}"
        scenario.check_end(folder, whole)
        usual = 0.7 * usual + 0.3 * (time.monotonic() - began)
        done.ends += 1
        shutil.rmtree(folder)
        said = []
    return done


def once(
    scenario: Scenario, folder: Path, seconds: float | None, at_work: bool = False
) -> tuple[list[str], int]:
    """One child, killed after so many seconds unless it has ended: what it said, and how it ended.

    The seconds are counted from its start, or from its first word if it is to be killed `at_work`.
    """
    ours, theirs = CHILDREN.Pipe(duplex=False)
    process = child(run, scenario, folder, theirs)
    theirs.close()
    if at_work:
        ours.poll(LONGEST)
    process.join(seconds)
    said = heard(ours) if process.is_alive() else []
    process.kill()
    code = ending(process)
    said += heard(ours)
    ours.close()
    return said, code
