"""How a hand draws the characters of `glyphs`: how it jitters, slants and inks; integers throughout.

`write` moves the single strokes, `pose` the whole character, `ink` puts the pen on the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int, UInt8, UInt64

from vma.data.glyph_strokes import MAX_STROKES, PAGE, STEPS, TURN, Character, sine

STYLE = 7  # random words for the affine part of a hand and its pen
HABIT = 5 + STEPS  # random words for each stroke
HAND = STYLE + MAX_STROKES * HABIT
MARGIN = PAGE // 18  # one pixel of 26 and the pen's radius
PEN_RADIUS = PAGE // 64

# A round pen: its middle, four points half-way out and eight on its rim, in sixteenths of its radius.
DISC = [(0, 0), (8, 0), (0, 8), (-8, 0), (0, -8)]
RIM = [(16, 0), (11, 11), (0, 16), (-11, 11), (-16, 0), (-11, -11), (0, -16), (11, -11)]
PEN = np.array(DISC + RIM, dtype=np.int64)


@dataclass(frozen=True)
class Programs:
    """Characters as arrays, one row for each; rows beyond a character's strokes are padding.

    Attributes:
        live: Which strokes are not padding.
        headings: Direction of each step.
        step: Length of each step of a stroke.
        parent: See `Stroke`, as the next three.
        parent_knot: Place on the parent.
        knot: Place on the stroke itself.
        gap: Way between the two places.
    """

    live: Bool[np.ndarray, "chars strokes"]
    headings: Int[np.ndarray, "chars strokes steps"]
    step: Int[np.ndarray, "chars strokes"]
    parent: Int[np.ndarray, "chars strokes"]
    parent_knot: Int[np.ndarray, "chars strokes"]
    knot: Int[np.ndarray, "chars strokes"]
    gap: Int[np.ndarray, "chars strokes 2"]

    def rows(self, rows: Int[np.ndarray, "images"]) -> "Programs":
        """The programs of some images, given the row of each."""
        return Programs(**{name: values[rows] for name, values in vars(self).items()})


def programs(characters: Sequence[Character]) -> Programs:
    """The arrays of some characters, magnified to their size on the page."""
    padded = [(c.strokes * MAX_STROKES)[:MAX_STROKES] for c in characters]
    live = np.array([[i < len(c.strokes) for i in range(MAX_STROKES)] for c in characters])
    turned = np.array([[(s.heading, *s.turns) for s in row] for row in padded], np.int64)
    headings = np.cumsum(turned, axis=-1)
    fields = ("reach", "parent", "parent_knot", "knot", "gap")
    reach, *pins = (np.array([[getattr(s, f) for s in row] for row in padded], np.int64) for f in fields)
    sides = np.ptp(walk(headings, np.full_like(reach, PAGE // STEPS)), axis=-2).max(axis=-1)
    p = Programs(live, headings, reach * (PAGE // STEPS) // sides, *pins)
    side = box(pin(walk(headings, p.step), p, p.gap), live)[1].max(axis=-1)
    scale = np.array([c.side for c in characters], np.int64) * PAGE // side
    return replace(p, step=p.step * scale[:, None] >> 16, gap=p.gap * scale[:, None, None] >> 16)


def walk(
    headings: Int[np.ndarray, "chars strokes steps"], step: Int[np.ndarray, "chars strokes"]
) -> Int[np.ndarray, "chars strokes knots 2"]:
    """k ↦ Σ_{i<k} step·(cos h_i, sin h_i): the knots of strokes that start at the origin."""
    unit = np.stack([sine(headings + TURN // 4), sine(headings)], axis=-1)
    knots = np.cumsum(unit * step[..., None, None] >> 15, axis=-2)
    return np.concatenate([np.zeros_like(knots[..., :1, :]), knots], axis=-2)


def pin(
    knots: Int[np.ndarray, "chars strokes knots 2"], p: Programs, gap: Int[np.ndarray, "chars strokes 2"]
) -> Int[np.ndarray, "chars strokes knots 2"]:
    """Strokes moved to their places on their parents, in the order of writing: a child follows its parent."""
    pinned, row = knots.copy(), np.arange(len(knots))
    for s in range(1, MAX_STROKES):
        place = pinned[row, p.parent[:, s], p.parent_knot[:, s]] + gap[:, s]
        pinned[:, s] += (place - knots[row, s, p.knot[:, s]])[:, None]
    return pinned


def box(
    knots: Int[np.ndarray, "chars strokes knots 2"], live: Bool[np.ndarray, "chars strokes"]
) -> tuple[Int[np.ndarray, "chars 2"], Int[np.ndarray, "chars 2"]]:
    """Centre and sides of the box around the live strokes."""
    far = 64 * PAGE
    low = np.where(live[..., None, None], knots, far).min(axis=(1, 2))
    high = np.where(live[..., None, None], knots, -far).max(axis=(1, 2))
    return (low + high) >> 1, high - low


def bell(words: UInt64[np.ndarray, "*any"], spread: int) -> Int[np.ndarray, "*any"]:
    """Nearly normal integers of mean 0 and standard deviation `spread`: sums of the four parts of a word."""
    total = np.zeros(words.shape, dtype=np.int64)
    for shift in (0, 16, 32, 48):
        total += (words >> np.uint64(shift) & np.uint64(0xFFFF)).astype(np.int64)
    return ((total - 2 * 0xFFFF) * (7 * spread)) >> 18  # 7/4 is near √3, which makes up for the four parts


def draw(
    images: UInt8[np.ndarray, "chars size size"], p: Programs, words: UInt64[np.ndarray, "chars words"]
) -> None:
    """Draws each program into its empty image, with the hand that its random words describe."""
    knots = write(p, words[:, STYLE:].reshape(len(words), MAX_STROKES, HABIT))
    knots = pose(knots, p.live, words[:, :STYLE])
    ink(images, knots, p.live, radius=PEN_RADIUS + bell(words[:, 6], PEN_RADIUS // 16))


def write(
    p: Programs, words: UInt64[np.ndarray, "chars strokes words"]
) -> Int[np.ndarray, "chars strokes knots 2"]:
    """Knots of the strokes as a hand writes them: each stroke turned, bent, wobbling, longer or shorter."""
    turned, bent = bell(words[..., 0], TURN // 65), bell(words[..., 1], TURN // 260)
    wobble = bell(words[..., 5:], TURN // 100)
    ramp = np.arange(STEPS) - STEPS // 2
    headings = p.headings + turned[..., None] + bent[..., None] * ramp + wobble
    step = p.step * (PAGE + bell(words[..., 2], PAGE // 8)) >> 16
    slip = bell(words[..., 3:5], PAGE // 70)
    return pin(walk(headings, step), p, p.gap + slip)


def pose(
    knots: Int[np.ndarray, "chars strokes knots 2"],
    live: Bool[np.ndarray, "chars strokes"],
    words: UInt64[np.ndarray, "chars words"],
) -> Int[np.ndarray, "chars strokes knots 2"]:
    """s·[[1+a, r−b], [−r, 1−a]]·knot: the scale s, aspect a, slant b and small rotation r of a hand."""
    wide, slant, turn = (bell(words[:, i], PAGE // d)[:, None, None] for i, d in ((0, 14), (1, 11), (2, 25)))
    x, y = np.moveaxis(knots, -1, 0)
    x, y = (x * (PAGE + wide) + y * (turn - slant)) >> 16, (y * (PAGE - wide) - x * turn) >> 16
    scale = PAGE + bell(words[:, 3], PAGE // 9)[:, None, None, None]
    return settle(np.stack([x, y], axis=-1) * scale >> 16, live, off_centre=bell(words[:, 4:6], PAGE // 22))


def settle(
    knots: Int[np.ndarray, "chars strokes knots 2"],
    live: Bool[np.ndarray, "chars strokes"],
    off_centre: Int[np.ndarray, "chars 2"],
) -> Int[np.ndarray, "chars strokes knots 2"]:
    """The character near the middle of the page, made smaller or moved back where it would leave the page."""
    centre, sides = box(knots, live)
    room = PAGE - 2 * MARGIN
    shrink = np.minimum(PAGE, room * PAGE // np.maximum(sides.max(axis=-1), 1))
    spare = (room - (sides * shrink[:, None] >> 16)) >> 1
    middle = PAGE // 2 + np.clip(off_centre, -spare, spare)
    return ((knots - centre[:, None, None]) * shrink[:, None, None, None] >> 16) + middle[:, None, None]


def spline(knots: Int[np.ndarray, "strokes knots 2"], n: int) -> Int[np.ndarray, "strokes points 2"]:
    """((1−t)²·a + (1 + 2t − 2t²)·b + t²·c) / 2 at t = 0, 1/n, …: quadratic B-spline of knots a, b, c, …"""
    padded = np.concatenate([knots[:, :1], knots, knots[:, -1:]], axis=1)[:, :, None]
    t = np.arange(n)[:, None]
    a, b, c = (n - t) ** 2, n * n + 2 * n * t - 2 * t * t, t * t
    points = (padded[:, :-2] * a + padded[:, 1:-1] * b + padded[:, 2:] * c) // (2 * n * n)
    return points.reshape(len(knots), -1, 2)


def ink(
    images: UInt8[np.ndarray, "chars size size"],
    knots: Int[np.ndarray, "chars strokes knots 2"],
    live: Bool[np.ndarray, "chars strokes"],
    radius: Int[np.ndarray, "chars"],
) -> None:
    """Sets to 255 each pixel that a pen touches on its way.

    A pixel is inked where any point of the pen falls into it. That is the max-pooling of a drawing on finer
    paper, ⌊⌊4·x⌋/4⌋ = ⌊x⌋, so the finer paper need not be kept.
    """
    size = images.shape[-1]
    char, stroke = np.nonzero(live)
    pen = PEN * radius[char, None, None] >> 4
    way = spline(knots[char, stroke], n=8 if size <= 40 else 16)  # dense enough to leave no holes
    touched = way[:, :, None] + pen[:, None]
    x, y = np.moveaxis(touched * size >> 16, -1, 0)
    images[char[:, None, None], y, x] = 255
