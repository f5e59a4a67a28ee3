"""Versions of Python with known security holes in modules that this package uses."""

import sys

# Of each minor version, the first whose zipfile refuses archives with overlapping entries (CVE-2024-0450), and
# whose temporary folders do not follow links when they are removed (CVE-2023-6597).
MENDED = {(3, 11): 8, (3, 12): 2}


def known_holes(version: tuple[int, int, int] = sys.version_info[:3]) -> str | None:
    """What is wrong with a Python of that version, if anything is known.

    >>> known_holes((3, 11, 7))
    'Python 3.11.7 has known holes in zipfile and tempfile, which vma uses: install 3.11.8 or later.'
    >>> known_holes((3, 13, 0))
    """
    minor, micro = version[:2], version[2]
    if micro >= MENDED.get(minor, 0):
        return None
    name, later = ".".join(map(str, version)), ".".join(map(str, (*minor, MENDED[minor])))
    return f"Python {name} has known holes in zipfile and tempfile, which vma uses: install {later} or later."
