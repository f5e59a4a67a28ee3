"""`make licences`: docs/licences.md, the licence of every package in constraints.txt, as its own metadata say."""

import re
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONSTRAINTS, PAGE = ROOT / "constraints.txt", ROOT / "docs/licences.md"
HEAD = """# Licences of what is installed

Every package of `constraints.txt`, with the licence that its own metadata name; made by
`make licences`. Which of them an installation has is decided by its extras: only `dev` has all.

| package | version | licence |
|---|---|---|
"""
ELSEWHERE = {"axe-playwright-python": "MIT; it holds axe-core, MPL-2.0"}  # in its files, not its metadata
LONGEST = 60  # characters of a licence's name: what is longer is its text


def pinned() -> dict[str, str]:
    """Versions by name, as constraints.txt has them."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)", CONSTRAINTS.read_text(), re.MULTILINE))


def licence_of(name: str) -> str:
    """What a package says of its licence: an SPDX expression, else its classifiers, else its own words."""
    about = metadata.metadata(name)
    classified = [
        each.split(" :: ")[-1] for each in about.get_all("Classifier", []) if each.startswith("License :: ")
    ]
    own = (about.get("License") or "").strip()
    short = own if own and len(own) <= LONGEST and "\n" not in own else ""
    return (
        about.get("License-Expression") or "; ".join(classified) or short or ELSEWHERE.get(name, "not named")
    )


def page() -> str:
    """The page."""
    rows = [f"| {name} | {version} | {licence_of(name)} |" for name, version in pinned().items()]
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
