"""What is installed is pinned, hashed, and has a licence."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.licences import PAGE, licence_of, pinned
from tools.lock import HASHED

ROOT = Path(__file__).parents[1]
PINNED = {canonicalize_name(name): version for name, version in pinned().items()}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
OURS = canonicalize_name(PROJECT["project"]["name"])


def requirements() -> list[Requirement]:
    project = PROJECT["project"]
    listed = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    return [each for each in map(Requirement, listed) if canonicalize_name(each.name) != OURS]


def test_every_direct_dependency_has_an_exact_version() -> None:
    missing = [each.name for each in requirements() if canonicalize_name(each.name) not in PINNED]
    assert missing == []
    for each in requirements():
        assert each.specifier.contains(PINNED[canonicalize_name(each.name)]), each


def test_the_tools_that_build_are_exact() -> None:
    for each in map(Requirement, PROJECT["build-system"]["requires"]):
        (only,) = each.specifier
        assert only.operator == "=="
        if canonicalize_name(each.name) in PINNED:
            assert only.version == PINNED[canonicalize_name(each.name)]


@pytest.mark.parametrize("name", sorted(PINNED))
def test_every_package_has_a_licence(name: str) -> None:
    try:
        assert licence_of(name) != "not named"
    except metadata.PackageNotFoundError:  # of an extra, or of another platform
        rows = re.findall(r"^\| (\S+) \| \S+ \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
        assert {canonicalize_name(each): licence for each, licence in rows}.get(name)


def test_licences_and_hashes_are_of_the_versions_that_are_pinned() -> None:
    rows = dict(re.findall(r"^\| (\S+) \| (\S+) \| .+ \|$", PAGE.read_text(), re.MULTILINE))
    del rows["package"]
    hashed = dict(
        re.findall(
            r"^(\S+)==([^\s+]+)(?:\+\w+)? --hash=sha256:[0-9a-f]{64}$", HASHED.read_text(), re.MULTILINE
        )
    )
    assert min(len(rows), len(hashed)) > 80
    for listed in (rows, hashed):
        assert [name for name, version in listed.items() if PINNED[canonicalize_name(name)] != version] == []
