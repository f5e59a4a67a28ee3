"""Numbers and names as a figure writes them."""

from unicodedata import combining, east_asian_width

LONGEST = 28  # characters of a name


def percent(share: float) -> str:
    """E.g. `31 %`, `0.4 %` or `<0.1 %`."""
    if share < 0.0005:
        return "<0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def thousands(number: int) -> str:
    """E.g. `12 345`."""
    return f"{number:,}".replace(",", " ")


def length(updates: int, asleep: int = 0, start: str = "") -> str:
    """E.g. `10 000 updates`, or `10 000 updates and 3 333 asleep`, and whether a trained model came before them."""
    sleep = f" and {thousands(asleep)} asleep" if asleep else ""
    before = " after those of the model that it began with" if start else ""
    return f"{thousands(updates)} update{'' if updates == 1 else 's'}{sleep}{before}"


def minus(text: str) -> str:
    """The text with minus signs instead of hyphens; for numbers, not for words."""
    return text.replace("-", "−")


def shorten(name: str, most: int = LONGEST) -> str:
    """A name that fits, shortened in the middle, in which no markup is interpreted."""
    plain = name.replace("$", r"\$")
    return plain if len(plain) <= most else f"{plain[: most // 2]}…{plain[-(most // 2 - 1) :]}"


def breadth(text: str) -> float:
    """The width of a text in Latin letters; Chinese, Japanese and Korean letters are nearly twice as wide."""
    return sum(0.0 if combining(c) else 1.8 if east_asian_width(c) in "WF" else 1.0 for c in text)
