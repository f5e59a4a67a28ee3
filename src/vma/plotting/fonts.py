"""Fonts for names in any script; letters that no font here has are left out rather than drawn as boxes."""

from functools import cache
from typing import Any

from matplotlib.axes import Axes
from matplotlib.font_manager import FontEntry, FontProperties, findSystemFonts, fontManager
from matplotlib.ft2font import FT2Font

from vma.plotting.wording import LONGEST, shorten

USUAL = "DejaVu Sans"  # which comes with matplotlib, and has Latin, Greek, Cyrillic and more
BOXES = "Last Resort"  # a font of boxes


def write_name(
    axes: Axes, x: float, y: float, name: str, *, otherwise: str = "", most: int = LONGEST, **style: Any
) -> None:
    """Write a user's name in fonts that have its letters, or `otherwise` if there are none."""
    found = families(name)
    text = otherwise if found is None else shorten(name, most)
    axes.text(x, y, text, family=list(found or (USUAL,)), **style)


@cache
def families(text: str) -> tuple[str, ...] | None:
    """The font families that together have every letter of `text`; None if some letter is in no font here."""
    chosen, missing = [USUAL], letters_of(text) - letters(*file_of(USUAL))
    while missing:
        best = best_family(frozenset(missing)) or installed_since(frozenset(missing))
        if best is None:
            return None
        chosen.append(best)
        missing -= letters(*file_of(best))
    return tuple(chosen)


def letters_of(text: str) -> set[int]:
    """The code points of a text."""
    return {ord(letter) for letter in text}


@cache
def letters(path: str, index: int) -> frozenset[int]:
    """The code points that a font has."""
    face: dict[str, Any] = {"face_index": index} if index else {}
    try:
        return frozenset(FT2Font(path, **face).get_charmap())
    except (OSError, RuntimeError):  # the file is gone, or not a font
        return frozenset()


def file_of(family: str) -> tuple[str, int]:
    """The file that matplotlib uses for a family, and the number of the font in it."""
    path = fontManager.findfont(FontProperties(family=[family]), fallback_to_default=False)
    return str(path), getattr(path, "face_index", 0)


def best_family(missing: frozenset[int]) -> str | None:
    """The family with most of the letters, preferably without serifs; None if no font has any."""
    found = {entry.name: share for entry in fontManager.ttflist if (share := share_of(missing, entry))}
    order = sorted(found, key=lambda name: (-found[name], "Sans" not in name, len(name), name))
    return next((name for name in order if letters(*file_of(name)) & missing), None)


def share_of(missing: frozenset[int], entry: FontEntry) -> int:
    """How many of the letters a font has; a font of boxes has none."""
    if entry.name.startswith(BOXES):
        return 0
    return len(missing & letters(entry.fname, getattr(entry, "index", 0)))


def installed_since(missing: frozenset[int]) -> str | None:
    """The same among fonts installed since matplotlib listed them; those that help are added to its list."""
    known = {entry.fname for entry in fontManager.ttflist}
    for path in findSystemFonts():
        if path not in known and letters(path, 0) & missing:
            fontManager.addfont(path)
    return best_family(missing)


@cache
def file_with(text: str) -> tuple[str, int] | None:
    """The file of one font that has every letter of `text`, and the font's number in it; None if there is none."""
    wanted = letters_of(text)
    names = [USUAL] if wanted <= letters(*file_of(USUAL)) else list(families(text) or ())
    return next((file for file in map(file_of, names) if wanted <= letters(*file)), None)
