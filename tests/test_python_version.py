"""A Python with known holes in what is used here gets a warning, and others get none."""

import pytest

from vma.python_version import MENDED, known_holes


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 11, 7), (3, 12, 1)])
def test_pythons_with_holes(version: tuple[int, int, int]) -> None:
    name, later = ".".join(map(str, version)), f"3.{version[1]}.{MENDED[version[:2]]}"
    said = known_holes(version)
    assert said == (
        f"Python {name} has known holes in zipfile and tempfile, which vma uses: install {later} or later."
    )


@pytest.mark.parametrize("version", [(3, 11, 8), (3, 11, 14), (3, 12, 2), (3, 13, 0), (3, 14, 1), (4, 0, 0)])
def test_mended_pythons(version: tuple[int, int, int]) -> None:
    assert known_holes(version) is None
