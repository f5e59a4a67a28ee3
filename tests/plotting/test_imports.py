"""What figures do without, and who does without figures (`tests/test_house.py` has the plan of all packages)."""

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/vma"


def importers(package: str, folder: Path) -> set[str]:
    """The files in a folder that import a package, anywhere in them."""
    return {
        path.relative_to(SOURCE).as_posix()
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        and (getattr(node, "module", None) or node.names[0].name).split(".")[0] == package
    }


def test_figures_are_drawn_of_arrays_without_torch() -> None:
    assert importers("torch", SOURCE / "plotting") == set()


def test_only_pages_know_jinja2() -> None:
    assert importers("jinja2", SOURCE) == {"quickstart/page.py", "reproduce/page.py"}


def test_the_library_does_not_wait_for_plotting() -> None:
    commands = "vma.commands.fewshot, vma.commands.evaluation, vma.training.loop, vma.quickstart"
    heavy = "{'matplotlib', 'jinja2'} & set(sys.modules)"
    script = f"import sys, vma, vma.cli, {commands}; assert not {heavy}, {heavy}"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
