"""What a character of `glyphs` is before anybody draws it: one to four strokes and how they hang together.

A stroke is the walk of a turtle: twelve steps of one length, with a turn between two steps. The first stroke
stands alone; each later one branches off an earlier stroke, crosses it, repeats it or stands beside it.

All numbers are integers, for a rounding that differs between machines would flip pixels. Lengths are in
2^-16 of the page, angles in 2^-16 of a full turn; the x axis points right, the y axis down.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from jaxtyping import Int

T = TypeVar("T")

PAGE = 1 << 16
TURN = 1 << 16
STEPS = 12
MAX_STROKES = 4
DICE = 64  # random words set aside for a character; the longest one rolls 7 + 3·10 + 1 times

EIGHTH = TURN // 8
RIGHT, DOWN, LEFT, UP = 0, 2 * EIGHTH, 4 * EIGHTH, 6 * EIGHTH

# The eleven turns of each kind of stroke, in degrees.
KINDS: dict[str, tuple[int, ...]] = {
    "line": (0,) * 11,
    "bend": (7,) * 11,
    "arc": (12,) * 11,
    "bow": (18,) * 11,
    "hook": (0, 0, 0, 0, 0, 0, 30, 45, 45, 35, 10),
    "cane": (45, 50, 50, 30, 0, 0, 0, 0, 0, 0, 0),
    "corner": (0, 0, 0, 0, 0, 90, 0, 0, 0, 0, 0),
    "tick": (0, 0, 0, 120, 0, 0, 0, 0, 0, 0, 0),
    "vee": (0, 0, 0, 0, 0, 135, 0, 0, 0, 0, 0),
    "zed": (0, 0, 0, 135, 0, 0, 0, -135, 0, 0, 0),
    "zigzag": (0, 0, 125, 0, 0, -125, 0, 0, 125, 0, 0),
    "stair": (0, 0, 0, 90, 0, 0, 0, -90, 0, 0, 0),
    "cup": (0, 0, 0, 90, 0, 0, 0, 90, 0, 0, 0),
    "box": (0, 0, 90, 0, 0, 90, 0, 0, 90, 0, 0),
    "triangle": (0, 0, 0, 120, 0, 0, 0, 120, 0, 0, 0),
    "wave": (30, 30, 30, 30, 30, 0, -30, -30, -30, -30, -30),
    "loop": (33,) * 11,
    "curl": (12, 15, 20, 25, 32, 40, 48, 55, 60, 60, 60),
    "ribbon": (0, 0, 0, 45, 50, 60, 50, 45, 0, 0, 0),
    "bumps": (45, 45, 45, 30, 0, 180, 0, 45, 45, 45, 30),
}
TURNS = {name: tuple(d * TURN // 360 for d in degrees) for name, degrees in KINDS.items()}
PLAIN = ("line", "bend", "arc")
RICH = tuple(name for name in KINDS if name not in PLAIN)
STARTS = tuple(name for name in RICH if any(TURNS[name][:6]))
ENDS = tuple(name for name in RICH if any(TURNS[name][6:]))
STEM = ("line",) * 10 + RICH
LIMB = ("line",) * 5 + ("bend", "arc", "bow", "bow", "hook", "loop", "loop", "corner", "tick")
CROSS = ("line",) * 6 + ("bend", "arc", "wave", "hook", "cane", "stair")
BESIDE = ("loop", "line", "arc", "bow", "vee", "corner", "wave", "hook")


@dataclass(frozen=True)
class Stroke:
    """A turtle's walk and the place where it is pinned to an earlier stroke.

    Attributes:
        turns: The eleven turns between the steps.
        heading: Direction of the first step.
        reach: The longer side of the box around the stroke.
        parent: The earlier stroke that this one is pinned to; the first stroke has none.
        parent_knot: Where on the parent; knot k lies after k steps.
        knot: Which knot of this stroke is pinned.
        gap: Way (x, y) from the parent's knot to this stroke's; zero where the two touch.
    """

    turns: tuple[int, ...]
    heading: int
    reach: int
    parent: int = 0
    parent_knot: int = 0
    knot: int = 0
    gap: tuple[int, int] = (0, 0)

    def heading_at(self, knot: int) -> int:
        """Direction of the pen as it arrives at a knot."""
        return self.heading + sum(self.turns[: max(knot - 1, 0)])


class Dice:
    """Rolls that are the same on every machine and with every NumPy: whole raw words, scaled by integers."""

    def __init__(self, words: Sequence[int]) -> None:
        self.words = iter(words)

    def between(self, low: int, high: int) -> int:
        """low + ⌊(high − low)·u⌋ for the next word u in [0, 1): one of low..high−1."""
        return low + ((high - low) * int(next(self.words)) >> 64)

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; an option listed twice is twice as likely."""
        return options[self.between(0, len(options))]


@dataclass(frozen=True)
class Character:
    """Strokes in the order of writing, and the longer side of the box around them on the page."""

    strokes: tuple[Stroke, ...]
    side: int


def invent(dice: Dice) -> Character:
    """A new character; the more strokes it has, the larger it is written."""
    count = dice.pick((1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4))
    strokes = [first(dice, count)]
    relations = (branch, branch, branch, cross, cross, beside, twin if count > 2 else branch)
    while len(strokes) < count:
        strokes.append(dice.pick(relations)(dice, strokes))
    return Character(tuple(strokes), side=PAGE * (13 + 3 * count) // 40 + dice.between(0, PAGE // 5))


def first(dice: Dice, count: int) -> Stroke:
    """A stem. Few strokes must differ much: two need one that is no line; one joins halves of two kinds."""
    if count == 1:
        turns = TURNS[dice.pick(STARTS)][:6] + TURNS[dice.pick(ENDS)][6:]
    else:
        turns = TURNS[dice.pick(STEM if count > 2 else RICH)]
    heading = dice.pick((RIGHT, RIGHT, DOWN, DOWN, DOWN, LEFT, UP, DOWN - EIGHTH, DOWN + EIGHTH))
    return Stroke(bent(dice, turns), heading + tilt(dice), reach=PAGE // 2)


def branch(dice: Dice, strokes: Sequence[Stroke]) -> Stroke:
    """A stroke that starts on an earlier one and leaves it sideways, as the bowl of a b leaves its stem."""
    parent, knot = dice.between(0, len(strokes)), dice.pick((0, 0, 3, 6, 9, 12, 12))
    away = dice.pick((-3, -2, -2, -2, -1, 1, 2, 2, 2, 3)) * EIGHTH
    heading = snapped(strokes[parent].heading_at(knot) + away) + tilt(dice)
    kinds = LIMB + RICH if len(strokes) == 1 else LIMB  # a third knotty stroke would only make a tangle
    turns = bent(dice, TURNS[dice.pick(kinds)])
    return Stroke(turns, heading, dice.between(PAGE // 4, PAGE // 2), parent, knot)


def cross(dice: Dice, strokes: Sequence[Stroke]) -> Stroke:
    """A stroke whose middle lies on an earlier one, as the bar of a t."""
    parent, knot = dice.between(0, len(strokes)), dice.pick((0, 3, 3, 6, 6, 9, 9, 12))
    away = dice.pick((2, 2, 2, -2, -2, 1, -1)) * EIGHTH
    heading = snapped(strokes[parent].heading_at(knot) + away) + tilt(dice)
    turns = bent(dice, TURNS[dice.pick(CROSS)])
    return Stroke(turns, heading, dice.between(PAGE // 4, PAGE // 2), parent, knot, knot=6)


def beside(dice: Dice, strokes: Sequence[Stroke]) -> Stroke:
    """A dot or a small stroke at some distance, as the dot of an i."""
    parent, knot = dice.between(0, len(strokes)), dice.pick((0, 6, 6, 12))
    side = strokes[parent].heading_at(knot) + dice.pick((2, -2)) * EIGHTH
    reach = dice.pick((PAGE // 16, PAGE // 16, PAGE // 5, PAGE // 4))
    turns = bent(dice, TURNS[dice.pick(BESIDE)])
    gap = vector(side, dice.between(PAGE // 7, PAGE // 4) + reach // 2)
    return Stroke(turns, snapped(side + dice.pick((0, 2)) * EIGHTH), reach, parent, knot, 6, gap)


def twin(dice: Dice, strokes: Sequence[Stroke]) -> Stroke:
    """The last stroke once more, parallel to itself, as the bars of an E."""
    last = strokes[-1]
    side = last.heading_at(6) + dice.pick((2, -2)) * EIGHTH
    gap = vector(side, dice.between(PAGE // 6, PAGE // 4))
    return replace(last, parent=len(strokes) - 1, parent_knot=6, knot=6, gap=gap)


def bent(dice: Dice, turns: Sequence[int]) -> tuple[int, ...]:
    """Turns to the left or to the right, a little sharper or flatter than the kind prescribes."""
    gain = dice.pick((-1, 1)) * dice.between(224, 288)
    return tuple(t * gain >> 8 for t in turns)


def tilt(dice: Dice) -> int:
    """Up to five degrees to either side."""
    return dice.between(-TURN // 72, TURN // 72)


def snapped(heading: int) -> int:
    """The nearest of the eight main directions: letters are built of uprights, bars and diagonals."""
    return (heading + EIGHTH // 2) // EIGHTH * EIGHTH


def vector(heading: int, length: int) -> tuple[int, int]:
    """length·(cos heading, sin heading)."""
    angles = np.array([heading + TURN // 4, heading])
    x, y = sine(angles) * length >> 15
    return int(x), int(y)


def sine(angle: Int[np.ndarray, "*any"]) -> Int[np.ndarray, "*any"]:
    """2^15·sin(angle) within 0.2 %, from parabolas: a maths library's sine may differ between machines."""
    x = (angle + TURN // 2) % TURN - TURN // 2
    y = x * (TURN // 2 - np.abs(x)) >> 13
    return y + (((y * np.abs(y) >> 15) - y) * 7373 >> 15)
