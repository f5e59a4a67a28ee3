"""The parts of docs/extending.md work as they stand there: in Python, and by name from the shell."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs/extending.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.S)
PARTS, IN_PYTHON = BLOCKS[:5], BLOCKS[5:]
USER = {name: value for name, value in os.environ.items() if name != "VMA_DATA"}  # who has no data
SHELL = re.findall(r"^    (vma (?:.*\\\n)*.*)$", TEXT, re.M)


@pytest.fixture
def outside(tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has installed `mine`, the package of the document, with its entry points."""
    site = tmp_path / "site"
    about = site / "mine-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "mine.py").write_text("\n\n".join(PARTS))
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    points = re.search(r"```toml\n(.*?)```", TEXT, re.S)
    assert points is not None
    names = points.group(1).replace('[project.entry-points."', "[").replace('"]', "]").replace('"', "")
    (about / "entry_points.txt").write_text(names)
    return {**USER, "PYTHONPATH": str(site), "VMA_RUNS": str(tmp_path / "runs")}


def run(arguments: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_parts_are_short() -> None:
    for block in PARTS:
        lines = [
            line for line in block.splitlines() if line.strip() and not line.startswith(("import", "from"))
        ]
        assert len(lines) <= 32


def test_parts_are_used_in_python(tmp_path: Path) -> None:
    """The blocks of the document, one after the other; the run that they train can be loaded again."""
    script = "\n\n".join([*PARTS, *IN_PYTHON, 'assert model.config.family == "vectors"'])
    environment = {**USER, "VMA_RUNS": str(tmp_path / "runs")}
    printed = run([sys.executable, "-W", "error", "-c", script], tmp_path, environment)
    assert "torch.Size([3, 1, 64])" in printed


def test_parts_are_used_by_name_from_the_shell(tmp_path: Path, outside: dict[str, str]) -> None:
    printed = []
    for command in SHELL:
        words = command.replace("\\\n", " ").split()
        printed.append(run([sys.executable, "-m", *words], tmp_path, outside))
    listed, trained, evaluated, described = printed
    assert "waves of thirty pitches" in listed
    assert "Done: 20 updates" in trained
    assert "waves test, K = 10" in evaluated
    assert re.search(r"family +vectors", described)
    assert re.search(r"similarity +euclidean", described)


def test_a_model_whose_parts_are_not_installed_is_refused_in_a_sentence(
    tmp_path: Path, outside: dict[str, str]
) -> None:
    words = SHELL[1].replace("\\\n", " ").split()
    run([sys.executable, "-m", *words], tmp_path, outside)
    alone = {name: value for name, value in outside.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "vma", "info", "runs/waves"], cwd=tmp_path, env=alone, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert re.fullmatch(r"vma: .*Unknown .* choose one of .*\n", done.stderr)
