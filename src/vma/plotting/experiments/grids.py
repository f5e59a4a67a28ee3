"""Samples in rows: of a learned memory (Figure 2B, Omniglot 28×28) and of one example (Figure 4A)."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vma.plotting.embedding import unpack
from vma.plotting.experiments.curves import draw_level, draw_parts
from vma.plotting.experiments.style import Answers, by_updates, error_of, label, sign
from vma.plotting.grids import grid_figure, place_image
from vma.plotting.style import AMBER, GREY, INK, LINE, TEAL, new_figure

PAPER_KL, PAPER_SPREAD = 2.5, 0.3


def one_shot_samples(answers: Answers) -> Figure:
    """Figure 4A: on the left the single item in memory, beside it samples of p(x|M)."""
    found = answers["samples"]["results"]
    groups = [unpack(found["items"])[:, :1], shown(found)]
    figure = grid_figure(groups, ["in M", "samples from p(x|M)"], [TEAL, INK])
    about = answers["samples"]["model"]
    figure.text(0.994, 0.985, f"{about['preset']}, {about['updates']} updates", fontsize=7, color=GREY,
                ha="right", va="top")  # fmt: skip
    return figure


def learned_memory_figure(answers: Answers) -> Figure:
    """Figure 2B: rows of samples that share an m_a; right, KL_a of every |M| beside the paper's 2.5 ± 0.3."""
    figure = new_figure(9.6, 5.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.75, 1))
    figure.subplots_adjust(left=0.008, right=0.985, top=0.93, bottom=0.12, wspace=0.16)
    draw_rows(left, answers)
    sizes: set[int] = set()
    for part, colour, shift in (("test", TEAL, 0.97), ("train", AMBER, 1.03)):
        found = [value["results"] for key, value in answers.items() if key.startswith(f"{part} ")]
        x, means = [shift * each["items"] for each in found], [each["kl_a"] for each in found]
        right.errorbar(x, [m["value"] for m in means], [error_of(m) for m in means], color=colour,
                       linestyle="none", marker="o", capsize=3, label=f"{part} set")  # fmt: skip
        sizes |= {each["items"] for each in found}
    right.axhspan(PAPER_KL - PAPER_SPREAD, PAPER_KL + PAPER_SPREAD, color=LINE, label="paper, 2.5 ± 0.3")
    right.set_xscale("log", base=2)
    right.set(ylim=(0, None), xlim=(0.7 * min(sizes), 1.4 * max(sizes)))
    right.set_xticks(sorted(sizes), [str(size) for size in sorted(sizes)])
    right.minorticks_off()
    label(right, "nats that the address carries", "learned items |M|", "KL(q(a|x) ‖ p(a)), nats")
    return sign(figure, {key: value for key, value in answers.items() if key.startswith("test ")})


def draw_rows(axes: Axes, answers: Answers) -> None:
    """Samples of the learned memory, with a common m_a in each row and its p(a)."""
    found = answers["samples"]["results"]
    montage(axes, shown(found), [f"{p:.2g}" for p in found["p_a"]])
    title = (
        f"p(a)   samples, a common $m_a$ in each row; learned |M| = {answers['test 256']['results']['items']}"
    )
    axes.set_title(title, loc="left", fontsize=8.5, color=GREY)


def omniglot28_figure(answers: Answers) -> Figure:
    """Learning curve of the learned memory on Omniglot 28×28, and samples that share an m_a in each row."""
    figure = new_figure(9.6, 4.4)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    figure.subplots_adjust(left=0.06, right=0.99, top=0.92, bottom=0.16, wspace=0.08)
    curve = answers["curve"]["results"]
    draw_parts(left, curve["rows"])
    level = math.log(curve["memory"])
    draw_level(left, level, f"log |M| = {level:.2f}")
    by_updates(left, f"training, K = {curve['K']}")
    draw_rows(right, answers)
    return sign(figure, {key: value for key, value in answers.items() if key.startswith("test ")})


def shown(found: dict[str, Any]) -> np.ndarray:
    """The samples as they should be shown; older answers have only the probabilities of ink."""
    return unpack(found.get("shown", found["probabilities"]))


def montage(axes: Axes, images: np.ndarray, names: Sequence[str]) -> None:
    """Images [rows, columns, height, width] as cards, with a word to the left of each row."""
    rows, columns = images.shape[:2]
    axes.set(xlim=(-0.85, columns + 0.02), ylim=(rows + 0.02, -0.02), anchor="NW")
    axes.axis("off")
    for row, name in enumerate(names):
        axes.text(-0.08, row + 0.5, name, fontsize=7, color=GREY, ha="right", va="center")
        for column in range(columns):
            place_image(axes, images[row, column], float(column), float(row), LINE, 0.6)
    axes.set_aspect("equal")
