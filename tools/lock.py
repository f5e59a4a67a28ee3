"""`make lock`: constraints-hashed.txt, the packages of constraints.txt with the hash of what pip takes here.

`pip install --require-hashes --no-deps -r constraints-hashed.txt` then installs the same bytes again or nothing.
The hashes are those of this platform and Python, which the first line names: another one needs a file of its own.
"""

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CONSTRAINTS, HASHED = ROOT / "constraints.txt", ROOT / "constraints-hashed.txt"


def report() -> list[dict[str, Any]]:
    """What pip would install for every line of constraints.txt."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--dry-run",
            "--ignore-installed",
            "--no-deps",
        ]
        subprocess.run([*command, "--report", str(path), "-r", str(CONSTRAINTS)], check=True)
        return json.loads(path.read_text())["install"]


def line(package: dict[str, Any]) -> str:
    """One requirement with its hash."""
    about = package["metadata"]
    digest = package["download_info"]["archive_info"]["hashes"]["sha256"]
    return f"{about['name']}=={about['version']} --hash=sha256:{digest}"


def main() -> None:
    """Write the file."""
    where = f"{platform.system()}, {platform.machine()}, Python {sys.version_info[0]}.{sys.version_info[1]}"
    head = (
        f"# Made by `make lock` for {where}; pip install --require-hashes --no-deps -r constraints-hashed.txt"
    )
    HASHED.write_text("\n".join([head, *sorted(map(line, report()), key=str.lower), ""]))


if __name__ == "__main__":
    main()
