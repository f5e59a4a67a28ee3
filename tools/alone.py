"""Run a command where nobody else can reach what it listens on: `python -m tools.alone COMMAND...`.

The command gets a network of its own, which has the loopback device and no other (Linux, `unshare`). Where that is
not allowed, it runs in the network that there is, and this says so.
"""

import os
import shutil
import socket
import struct
import subprocess
import sys

try:
    import fcntl
except ImportError:  # Windows, where there is no `unshare` either
    fcntl = None  # type: ignore[assignment]

NETWORK = ("unshare", "--user", "--map-current-user", "--keep-caps", "--net", "--")
INSIDE = "VMA_ALONE"  # set for the command inside
SET_FLAGS, UP = 0x8914, 0x1  # SIOCSIFFLAGS, IFF_UP


def possible() -> bool:
    """Whether this machine lets us have a network of our own."""
    return bool(shutil.which(NETWORK[0])) and not subprocess.run([*NETWORK, "true"], check=False).returncode


def raise_loopback() -> None:
    """Bring up the loopback device, which is down in a new network."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh14x", b"lo", UP))


def main() -> None:
    """Become the command."""
    command = sys.argv[1:]
    if os.environ.get(INSIDE):
        raise_loopback()
    elif possible():
        os.environ[INSIDE] = "1"
        command = [*NETWORK, sys.executable, "-m", "tools.alone", *command]
    else:
        print("No network of its own: what is started now can be reached from outside.", file=sys.stderr)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
