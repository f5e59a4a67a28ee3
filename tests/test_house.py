"""The house has floors: no room imports from one above it, and none from one that imports from it."""

import ast
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src/vma"
# From the ground up; rooms of one floor know nothing of each other.
FLOORS = (
    ("errors",),
    ("files", "limits", "names", "python_version", "registry", "plotting", "pretrained"),
    ("parts", "index"),
    ("core",),
    ("estimators", "kernels", "large"),
    ("networks",),
    ("likelihoods",),
    ("model",),
    ("baselines",),
    ("build",),
    ("data",),
    ("fewshot", "runs"),
    ("export", "sklearn", "training"),
    ("evaluation", "serve"),
    ("quickstart", "reproduce"),
    ("commands",),
    ("cli",),
)
CORE = (
    "addressing", "bounds", "checks", "chunks", "columns", "config", "latents", "masses", "memory", "proposals",
    "ranges", "reads", "similarity", "subsets", "warps",
)  # fmt: skip
ROOM_OF = {
    **dict.fromkeys(CORE, "core"),
    "dreams": "model",
    "generative_model": "model",
    "storage": "build",
    "hub": "build",
    "allowance": "build",
    "tensor_files": "files",
    "__init__": "package",
    "__main__": "cli",
}


def modules() -> dict[str, Path]:
    names = {}
    for path in SOURCE.rglob("*.py"):
        parts = ["vma", *path.relative_to(SOURCE).with_suffix("").parts]
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def room(module: str) -> str:
    """The package of a module; of one that lies beside the packages, what `ROOM_OF` says, or its own name."""
    first = module.split(".")[1] if "." in module else "__init__"
    return ROOM_OF.get(first, first)


def imports(module: str, path: Path, known: dict[str, Path]) -> set[str]:
    """All modules of the package that a module imports, wherever in it, but for the sake of types alone."""
    found: set[str] = set()
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "vma":
            for name in node.names:
                whole = f"{node.module}.{name.name}"
                found.add(whole if whole in known else str(node.module))
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name.split(".")[0] == "vma"}
    return found - {module}


def graph() -> dict[str, set[str]]:
    known = modules()
    return {name: imports(name, path, known) for name, path in known.items()}


def test_no_module_imports_itself_by_a_detour() -> None:
    edges = {name: found for name, found in graph().items() if name != "vma"}
    without_package = {name: {each for each in found if each != "vma"} for name, found in edges.items()}
    list(TopologicalSorter(without_package).static_order())  # raises CycleError, which names the cycle


def test_rooms_import_from_below_alone() -> None:
    floor = {name: number for number, names in enumerate(FLOORS) for name in names}
    upward = defaultdict(set)
    for name, found in graph().items():
        here = room(name)
        if here == "package":
            continue
        assert here in floor, f"{name} is in a room that is not on the plan"
        for other in found:
            there = room(other)
            if there not in (here, "package") and floor[there] >= floor[here]:
                upward[here, there].add((name, other))
    assert not upward


def test_plotting_is_alone_in_knowing_how_to_plot() -> None:
    users = {
        path.relative_to(SOURCE).parts[0]
        for path in SOURCE.rglob("*.py")
        if "matplotlib" in {
            (getattr(node, "module", None) or node.names[0].name).split(".")[0]
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
    }  # fmt: skip
    assert users <= {"plotting", "data"}  # of data, the contact sheet, for a font file
