"""Who may import what: figures know results only, and only figures know matplotlib."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import vma

ROOT = Path(vma.__file__).parent
PLOTTING = ROOT / "plotting"
FONT = ROOT / "data" / "contact_sheet.py"  # takes a font file from matplotlib, and draws nothing with it
PAGES = {ROOT / "quickstart" / "page.py", ROOT / "reproduce" / "page.py"}


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def importers(package: str, files: Iterator[Path]) -> set[Path]:
    return {path for path in files if any(name.split(".")[0] == package for name in imports(path))}


def test_plotting_knows_results_only() -> None:
    for path in PLOTTING.rglob("*.py"):
        own = {name for name in imports(path) if name.split(".")[0] == "vma"}
        assert all(name.startswith(("vma.plotting", "vma.errors")) for name in own), (path, own)
    assert importers("torch", PLOTTING.rglob("*.py")) == set()


def test_only_plotting_knows_matplotlib_and_only_pages_know_jinja2() -> None:
    elsewhere = {path for path in importers("matplotlib", ROOT.rglob("*.py")) if PLOTTING not in path.parents}
    assert elsewhere <= {FONT}
    assert importers("jinja2", ROOT.rglob("*.py")) == PAGES


def test_the_library_does_not_wait_for_plotting() -> None:
    commands = "vma.commands.fewshot, vma.commands.evaluation, vma.training.loop, vma.quickstart"
    heavy = "{'matplotlib', 'jinja2'} & set(sys.modules)"
    script = f"import sys, vma, vma.cli, {commands}; assert not {heavy}, {heavy}"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
