"""Every name that a document mentions in its text is there after `import vma` alone."""

import re
import subprocess
import sys

from tests.test_documents import FENCED, GUIDES, MODULE, names_in

# Pages of the reference name modules, which are imported by themselves.
TEXTS = [path for path in GUIDES if path.parent.name != "api"]
# Every name is asked of a package that is imported anew, so that none is there thanks to another.
ASK = """
import functools, importlib, sys
for name in sys.argv[1:]:
    for module in [each for each in sys.modules if each.split(".")[0] == "vma"]:
        del sys.modules[module]
    try:
        functools.reduce(getattr, name.split(".")[1:], importlib.import_module("vma"))
    except AttributeError:
        print(name)
"""
GROUPS = (names_in("vma.parts") or set()) | (names_in("vma.data.registry") or set())  # of entry points too


def missing(names: set[str]) -> list[str]:
    """Those of `names` that are not there after `import vma`."""
    command = [sys.executable, "-c", ASK, *sorted(names)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


def in_text(document: str) -> set[str]:
    """Names of this package that a document mentions, but for those that its code imports by itself."""
    text = re.sub(r"^from .*$", "", document, flags=re.MULTILINE)
    inline = [*re.findall(r"`([^`]+)`", FENCED.sub("", text)), *(code for _, code in FENCED.findall(text))]
    return {name for each in inline for name in MODULE.findall(each) if name.startswith("vma.")}


def test_documented_names_are_there_after_import_vma() -> None:
    names = set().union(*(in_text(path.read_text()) for path in TEXTS)) - GROUPS
    assert {"vma.sklearn.MemoryClassifier", "vma.build_model", "vma.data.DATASETS"} <= names
    assert missing(names) == []


def test_names_that_are_nowhere_are_missing() -> None:
    assert missing({"vma.fewshot.load", "vma.nothing", "vma.data.nothing", "vma.__nothing__"}) == [
        "vma.__nothing__", "vma.data.nothing", "vma.nothing",
    ]  # fmt: skip
