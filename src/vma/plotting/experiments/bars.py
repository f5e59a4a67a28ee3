"""Figure 4B and the classification in the text: our results as bars, the paper's numbers as diamonds."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vma.plotting.experiments.style import PAPER_MARK, Answers, error_of, label, sign
from vma.plotting.style import AMBER, BLUE, INK, TEAL, new_figure

PANELS = (
    ("kl_a", BLUE, "KL(q(a|x) ‖ p(a))", (2.0, 4.5)),
    ("kl_z", AMBER, "KL(q(z|m,x) ‖ p(z|m))", (28.2, 21.8)),
    ("nll", TEAL, "NLL of unseen classes", (75.1, 69.1)),
)
PAPER_ACCURACY = {(5, 1): 0.91, (5, 5): 0.97, (20, 1): 0.77, (20, 5): 0.90}
FORMS = (("by_address", TEAL, "Σ q(a|x)"), ("by_likelihood", AMBER, "Σ p(x, a|M), by z ~ q"))


def breakdown_figure(answers: Answers) -> Figure:
    """Figure 4B: KL_a, KL_z and NLL of models trained with 1, 4, 8 and 16 examples of each class in memory."""
    figure = new_figure(9.6, 3.5)
    panels = figure.subplots(1, 3)
    figure.subplots_adjust(left=0.055, right=0.985, top=0.88, bottom=0.21, wspace=0.22)
    shots = [int(key) for key in answers]
    for axes, (measure, colour, title, paper) in zip(panels, PANELS, strict=True):
        means = [answer["results"][measure] for answer in answers.values()]
        draw_bars(axes, means, colour)
        ends = [
            (i, value)
            for i, s in enumerate(shots)
            for end, value in ((1, paper[0]), (16, paper[1]))
            if s == end
        ]
        if ends:
            axes.plot(*zip(*ends, strict=True), **PAPER_MARK, label="paper, first and last")
        axes.set_xticks(range(len(shots)), [str(s) for s in shots])
        label(axes, title, "items of each class in memory", "nats")
    panels[2].set_ylim(bottom=0)
    return sign(figure, answers)


def draw_bars(axes: Axes, means: list[dict[str, Any]], colour: str) -> None:
    """Bars with standard errors, each with its number."""
    values = [mean["value"] for mean in means]
    axes.bar(range(len(values)), values, 0.62, color=colour, alpha=0.85, label="ours",
             yerr=[error_of(mean) for mean in means], capsize=3, error_kw={"elinewidth": 0.9})  # fmt: skip
    for place, value in enumerate(values):
        axes.annotate(f"{value:.1f}", (place, 0), (0, 3), textcoords="offset points", ha="center", fontsize=8,
                      color="white", weight="bold")  # fmt: skip
    axes.margins(y=0.28)


def classification_figure(answers: Answers) -> Figure:
    """Share of right answers for each task by either form, with 95 % intervals; the paper's as diamonds."""
    tasks = answers["by_address"]["results"]["tasks"]
    figure = new_figure(7.2, 4.0)
    axes = figure.add_axes((0.085, 0.16, 0.9, 0.76))
    for shift, (form, colour, name) in zip((-0.18, 0.18), FORMS, strict=True):
        shares = [task[form] for task in answers[form]["results"]["tasks"]]
        trials = f"{name}, {answers[form]['trials']} trials each"
        draw_shares(axes, [i + shift for i in range(len(tasks))], shares, colour, trials)
    draw_paper_and_chance(axes, tasks)
    axes.set_xticks(range(len(tasks)), [f"{task['ways']}-way {task['shots']}-shot" for task in tasks])
    axes.set(ylim=(0, 125), yticks=range(0, 101, 20))
    label(axes, "unseen classes, no retraining", "", "right, %")
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="upper center")
    return sign(figure, answers)


def draw_paper_and_chance(axes: Axes, tasks: list[dict[str, Any]]) -> None:
    """The paper's share as a diamond on the first bar of each task, and a dotted line at chance."""
    known = [(task["ways"], task["shots"]) for task in tasks]
    marks = [(i - 0.18, 100 * PAPER_ACCURACY[task]) for i, task in enumerate(known) if task in PAPER_ACCURACY]
    if marks:
        axes.plot(*zip(*marks, strict=True), **PAPER_MARK, label="paper, Σ q(a|x)")
    for i, task in enumerate(tasks):
        axes.plot((i - 0.42, i + 0.42), (100 * task["chance"],) * 2, color=INK, linewidth=1,
                  linestyle=(0, (2, 2)), label=None if i else "chance")  # fmt: skip


def draw_shares(axes: Axes, x: list[float], shares: list[dict[str, Any]], colour: str, name: str) -> None:
    """Bars of shares in percent, with their intervals and numbers."""
    values = [100 * share["value"] for share in shares]
    below = [100 * (share["value"] - share["low"]) for share in shares]
    above = [100 * (share["high"] - share["value"]) for share in shares]
    axes.bar(x, values, 0.34, color=colour, alpha=0.85, yerr=[below, above], capsize=3, label=name,
             error_kw={"elinewidth": 0.9})  # fmt: skip
    for place, value in zip(x, values, strict=True):
        axes.annotate(f"{value:.0f}", (place, 0), (0, 3), textcoords="offset points", ha="center", fontsize=8,
                      color="white", weight="bold")  # fmt: skip
