"""A Milvus server for tests and benchmarks: an environment of its own, and starting, stopping and killing it.

`python -m tools.engine` runs one until it is interrupted. The server is the whole engine in one process. It keeps
its data in a folder and listens on this machine's ports, so run it where others cannot reach these.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("milvus==2.3.5", "setuptools<81")
HOME = Path(os.environ.get("VMA_ENGINE_FOLDER", ROOT / ".engine"))
SECONDS = 180.0  # that a start may take; after a kill it waits until its own old registration has run out
READY = "Welcome"  # what it prints when it can be asked
# A registration ends soon after a kill, and all parts of the server find each other on this machine.
PARTS = ("proxy", "rootCoord", "queryCoord", "queryNode", "indexNode", "dataCoord", "dataNode")
CONFIGURATION = ("common.session.ttl=5", *(f"{part}.ip=127.0.0.1" for part in PARTS))


def installed(home: Path = HOME) -> Path:
    """The program `milvus-server` in an environment of its own, which is made where there is none."""
    program, done = home / "bin/milvus-server", home / "installed"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        pip = [home / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *PACKAGES], check=True)
        done.write_text("\n".join(PACKAGES))
    (home / "unpacked").mkdir(exist_ok=True)
    return program


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Engine:
    """A server whose data are in a folder; what it acknowledged is there when it is started again."""

    def __init__(self, folder: Path, options: Sequence[str] = ()) -> None:
        self.folder, self.options, self.port = folder, options, free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> float:
        """Start it, and say how many seconds that took."""
        program, begun = installed(), time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):  # its programs, 400 MB, are unpacked once
            (self.folder / "bin").symlink_to(HOME / "unpacked")
        configuration = [word for each in CONFIGURATION for word in ("--extra-config", each)]
        command = [
            program,
            "--data",
            self.folder,
            "--proxy-port",
            str(self.port),
            *configuration,
            *self.options,
        ]
        log = self.folder / "server.log"
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                command,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        while READY not in log.read_text(errors="replace"):
            if self.process.poll() is not None or time.monotonic() - begun > SECONDS:
                self.kill()
                raise RuntimeError(
                    f"The Milvus server did not start: {log.read_text(errors='replace')[-500:]}"
                )
            time.sleep(0.2)
        return time.monotonic() - begun

    def signal(self, number: int) -> None:
        """Send a signal to the server, which is a group of processes of its own."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
        self.process = None


def main() -> None:
    """Run a server until it is interrupted."""
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
