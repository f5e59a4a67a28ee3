"""`make load`: many clients of the page's server at once, on this machine alone; what came of it as JSON."""

import argparse
import asyncio
import json
import platform
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from safetensors import safe_open

from tests.helpers.served import blurring_model
from tests.load.crowd import Outcome, crowd
from vma.storage import save_model

MOST_CLIENTS, MOST_MINUTES = 1200, 30.0
MOST_LOG = 2**20  # bytes
ADDRESS = "127.0.0.1"  # and no other


@dataclass(frozen=True)
class Server:
    """A server as a process of its own."""

    process: subprocess.Popen[bytes]
    url: str
    memory: Path
    log: Path

    def memory_in_use(self) -> int:
        """Bytes of it that are in memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * 4096

    def ask(self) -> dict[str, Any]:
        """What it remembers."""
        with urllib.request.urlopen(f"{self.url}api/memory", timeout=60) as answer:
            return json.loads(answer.read())


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    """Start one, and end it."""
    model, memory, log = folder / "model.safetensors", folder / "memory.safetensors", folder / "log"
    save_model(blurring_model(), model)
    command = [
        sys.executable,
        "-m",
        "vma",
        "serve",
        str(model),
        "--port",
        "0",
        "--no-browser",
        "--memory",
        str(memory),
    ]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        assert process.stdout is not None
        lines = [process.stdout.readline().decode() for _ in range(3)]
        url = lines[2].split()[1]
        assert url.startswith(f"http://{ADDRESS}:")
        try:
            yield Server(process, url, memory, log)
        finally:
            process.terminate()


def load(clients: int, minutes: float) -> dict[str, Any]:
    """What came of it; the promises that were broken are in `broken`."""
    with tempfile.TemporaryDirectory(prefix="vma-load-") as name, server(Path(name)) as found:
        before = found.memory_in_use()
        outcome = asyncio.run(crowd(found.url, clients, 60 * minutes))
        labels = {card["label"] for card in found.ask()["cards"]}
        after = found.memory_in_use()
        with safe_open(found.memory, framework="np") as file:
            kept = set(json.loads(file.metadata()["labels"]))
        result = {
            "clients": clients, "minutes": minutes, "machine": platform.machine(),
            "answers": dict(sorted(outcome.answers.items())), **times(outcome),
            "remembered": len(outcome.remembered), "grown_megabytes": round((after - before) / 2**20, 1),
            "log_bytes": found.log.stat().st_size, "odd": outcome.odd[:20],
        }  # fmt: skip
        return {**result, "broken": broken(outcome, labels, kept, result)}


def times(outcome: Outcome) -> dict[str, float]:
    """How long quick clients waited."""
    if len(outcome.seconds) < 2:
        return {}
    return {
        "median_seconds": round(median(outcome.seconds), 3),
        "slowest_of_a_hundred_seconds": round(quantiles(outcome.seconds, n=100)[-1], 3),
    }


def broken(outcome: Outcome, labels: set[str], kept: set[str], result: dict[str, Any]) -> list[str]:
    """Which promises were not kept."""
    found = []
    if lost := outcome.remembered - labels:
        found.append(f"{len(lost)} acknowledged changes are not in memory")
    if lost := outcome.remembered - kept:
        found.append(f"{len(lost)} acknowledged changes are not in the file")
    if outcome.odd:
        found.append(f"{len(outcome.odd)} answers were none")
    if not outcome.seconds:
        found.append("nobody was served")
    if result["log_bytes"] > MOST_LOG:
        found.append("the log has grown")
    return found


def main() -> None:
    """Run, write, and say whether a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=__doc__)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=Path("results/load.json"))
    options = parser.parse_args()
    if not (0 < options.clients <= MOST_CLIENTS and 0 < options.minutes <= MOST_MINUTES):
        parser.error(f"at most {MOST_CLIENTS} clients and {MOST_MINUTES:g} minutes")
    found = load(options.clients, options.minutes)
    options.out.write_text(json.dumps(found, indent=1))
    print(json.dumps(found, indent=1))
    raise SystemExit(bool(found["broken"]))


if __name__ == "__main__":
    main()
