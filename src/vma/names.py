"""Names of folders, files and labels that come from outside, as text that is safe to show."""

import unicodedata

UNPRINTABLE = ("Cc", "Cs", "Cn", "Zl", "Zp")  # controls, lone surrogates, unassigned code points, line ends
TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # they reverse text
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a spreadsheet would evaluate


def plain(name: str) -> str:
    """`name` on one line, with whatever cannot be shown, or would control a terminal, written as an escape.

    >>> plain("two\nlines"), plain("\x1b[2J"), plain("caf\udce9")
    ('two\\nlines', '\\x1b[2J', 'caf\\udce9')
    """
    return "".join(spelled_out(letter) if is_harmful(letter) else letter for letter in name)


def is_harmful(letter: str) -> bool:
    """Whether a character must not be shown as it is."""
    return letter in TURNING or unicodedata.category(letter) in UNPRINTABLE


def spelled_out(letter: str) -> str:
    """The character as an escape sequence of Python's."""
    return letter.encode("unicode_escape").decode()


def label_of(name: str) -> str:
    """A name as a label: on one line, without spaces around it, in Unicode's composed form (é as one character)."""
    return plain(unicodedata.normalize("NFC", name)).strip()


def cell(text: str) -> str:
    """Text for a cell of a table: with an apostrophe before it where a spreadsheet would take it for a formula.

    >>> cell("=1+1"), cell("ka")
    ("'=1+1", 'ka')
    """
    return f"'{text}" if text.startswith(FORMULAS) else text
