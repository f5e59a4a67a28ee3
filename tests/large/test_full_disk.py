"""A disk that is really full, a file system of a few hundred kilobytes: a sentence, and nothing is lost."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.trained_models import drawings, trained

OWN = ("unshare", "--user", "--map-root-user", "--mount", "--")
COUNT = 700
# Fill the disk; make it larger; go on; check. What is said goes to files outside.
SCRIPT = """
mount -t tmpfs -o size=240k tmpfs small || exit 77
{vma} memory build symbols.npy --out small/M {options} >full.out 2>full.err; echo $? >full.code
mount -o remount,size=20m small || exit 1
{vma} memory build symbols.npy --out small/M {options} >again.out || exit 1
{vma} memory verify small/M --model run >last.out
"""


def may_mount() -> bool:
    """Whether this machine lets us have a file system of our own."""
    probe = [*OWN, "sh", "-c", "mount -t tmpfs tmpfs /mnt"]
    return (
        bool(shutil.which(OWN[0])) and not subprocess.run(probe, capture_output=True, check=False).returncode
    )


@pytest.mark.skipif(
    not may_mount(), reason="this machine lets nobody mount a small file system (Linux, unshare)"
)
def test_a_full_disk_is_said_and_a_larger_one_is_gone_on_with(tmp_path: Path) -> None:
    np.save(tmp_path / "symbols.npy", 255 * drawings(COUNT))
    trained(tmp_path / "run")
    (tmp_path / "small").mkdir()
    script = SCRIPT.format(vma=f"{sys.executable} -m vma", options="--model run --label a --index faiss")
    done = subprocess.run(
        [*OWN, "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = {
        path.name: path.read_text()
        for path in tmp_path.glob("*.*")
        if path.suffix in (".out", ".err", ".code")
    }
    assert said["full.code"] == "2\n"
    assert said["full.err"].startswith("vma: Cannot write small/M/")
    assert said["full.err"].endswith(": No space left on device.\n")
    assert said["full.err"].count("\n") == 1
    new, rest = said["again.out"].split(" new items; ")
    assert 0 < int(new) < COUNT
    assert rest == f"small/M holds {COUNT}.\n"
    assert f"{COUNT} items, as many as were written; Σ p(a) = 1\n" in said["last.out"]
    assert f"index faiss: {COUNT} items" in said["last.out"]
