"""Names from outside, of folders, files and labels, as text that does no harm where it is shown."""

import unicodedata

UNPRINTABLE = ("Cc", "Cs", "Cn", "Zl", "Zp")  # controls, halves of characters, nothing at all, ends of lines
TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # what turns the text around it
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what a cell begins with that a spreadsheet would work out


def plain(name: str) -> str:
    r"""`name` on one line: what cannot be shown, or would command a terminal, is spelled out.

    >>> plain("two\nlines"), plain("\x1b[2J"), plain("caf\udce9")
    ('two\\nlines', '\\x1b[2J', 'caf\\udce9')
    """
    return "".join(spelled_out(letter) if is_harmful(letter) else letter for letter in name)


def is_harmful(letter: str) -> bool:
    """Whether a letter is none that can be shown by itself."""
    return letter in TURNING or unicodedata.category(letter) in UNPRINTABLE


def spelled_out(letter: str) -> str:
    """The letter as Python would write it."""
    return letter.encode("unicode_escape").decode()


def label_of(name: str) -> str:
    """A name as a label: composed, so that two ways to write é are one, on one line, without space around."""
    return plain(unicodedata.normalize("NFC", name)).strip()


def cell(text: str) -> str:
    """Text for a cell of a table: a spreadsheet takes one with an apostrophe before it for text, whatever it says.

    >>> cell("=1+1"), cell("ka")
    ("'=1+1", 'ka')
    """
    return f"'{text}" if text.startswith(FORMULAS) else text
