"""A Milvus server for tests and benchmarks: an environment of its own, and starting and killing it.

`python -m tools.engine` runs one until it is interrupted; `python -m tools.engine install` only fetches it.
The server is the whole engine in one process. It keeps its data in a folder and listens on all addresses of this
machine; some of its ports are always the same, and one runs at a time. Run it by `tools.alone`, in a network of
its own.
"""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[1]
PACKAGES = ("milvus==2.3.5", "setuptools<81")
HOME = Path(os.environ.get("VMA_ENGINE_FOLDER", ROOT / ".engine"))
SECONDS = 180.0  # that a start may take; after a kill it waits until its own old registration has run out
READY = "Welcome"  # what it prints when it can be asked
# Below those that a system gives to clients: one that looks for a killed server could be given the server's own.
PORTS = range(20_000, 30_000)
# `milvus-server`, but its port is taken to be free when the connections of a killed server linger there, else it
# would quietly choose another; and it ends with whoever has started it.
PROGRAM = """
import os
import signal
import socket
import threading
import time
import milvus

def end_with(parent):
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)

threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()

def bound(self, port):
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return None

milvus.MilvusServerConfig.try_bind_port = bound
milvus.main()
"""
# A registration ends soon after a kill, and all parts of the server find each other on this machine.
PARTS = ("proxy", "rootCoord", "queryCoord", "queryNode", "indexNode", "dataCoord", "dataNode")
CONFIGURATION = ("common.session.ttl=5", *(f"{part}.ip=127.0.0.1" for part in PARTS))


def installed(home: Path = HOME) -> Path:
    """The Python of an environment that has the server and nothing else, which is made where there is none."""
    python, done = home / "bin/python", home / "installed"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *PACKAGES], check=True)
        done.write_text("\n".join(PACKAGES))
    (home / "unpacked").mkdir(exist_ok=True)
    return python


def free_port() -> int:
    """One that nobody listens on."""
    for port in random.SystemRandom().sample(PORTS, 100):
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("Every port that was tried is taken.")


class Engine:
    """A server whose data are in a folder; what it acknowledged is there when it is started again."""

    def __init__(self, folder: Path, options: Sequence[str] = ()) -> None:
        self.folder, self.options, self.port = folder, options, free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def command(self) -> list[str]:
        """What starts it."""
        configuration = [word for each in CONFIGURATION for word in ("--extra-config", each)]
        place = ["--data", str(self.folder), "--proxy-port", str(self.port)]
        return [str(installed()), "-c", PROGRAM, *place, *configuration, *self.options]

    def start(self) -> float:
        """Start it, and say how many seconds that took."""
        command, begun = self.command, time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):  # its programs, 400 MB, are unpacked once
            (self.folder / "bin").symlink_to(HOME / "unpacked")
        log = self.folder / "server.log"
        with log.open("wb") as out:
            environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
            self.process = subprocess.Popen(
                command, stdout=out, stderr=out, start_new_session=True, env=environment
            )
        while READY not in (said := log.read_text(errors="replace")):
            if self.process.poll() is not None or time.monotonic() - begun > SECONDS:
                self.kill()
                raise RuntimeError(f"The Milvus server did not start: {said[-500:]}")
            time.sleep(0.2)
        return time.monotonic() - begun

    def kill(self) -> None:
        """End it at once, as a power cut would; it is a group of processes of its own."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None


def end(*_: object) -> NoReturn:
    """Be interrupted by whatever wants this to end."""
    raise KeyboardInterrupt


def main() -> None:
    """Run a server until it is interrupted."""
    installed()
    if sys.argv[1:] == ["install"]:
        return
    signal.signal(signal.SIGTERM, end)
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder) / "data")
        try:
            print(f"started in {engine.start():.0f} s: {engine.uri}", flush=True)
            signal.pause()
        except KeyboardInterrupt:
            print("ended")
        finally:
            engine.kill()


if __name__ == "__main__":
    main()
