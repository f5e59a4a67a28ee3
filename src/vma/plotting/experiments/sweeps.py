"""Figure 5: NLL as the memory grows, by more classes (A) and by more examples of each class (B)."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vma.plotting.experiments.style import (
    COLOURS,
    MODELS,
    SERIES,
    Answer,
    Answers,
    after,
    label,
    series,
    sign,
)
from vma.plotting.style import AMBER, BLUE, INK, TEAL, new_figure

LINES = {"vma": TEAL, "vma 16": BLUE, "soft": AMBER}
CLASSES = "classes in memory, C"
DASHED = (0, (5, 3))


def classes_figure(answers: Answers) -> Figure:
    """Figure 5A: NLL against the classes in memory, its rise by target, and whether the class is found."""
    figure = new_figure(13.2, 4.7)
    left, right, found = figure.subplots(1, 3, width_ratios=(1.25, 1, 1))
    figure.subplots_adjust(left=0.045, right=0.99, top=0.92, bottom=0.27, wspace=0.17)
    for shift, (key, colour) in zip((1.0, 1.05, 0.95), LINES.items(), strict=True):
        if key in answers:
            draw_sweep(left, answers[key], colour, shift)
            draw_rise(right, answers[key], colour, shift)
            draw_own_class(found, answers[key], colour, shift)
    draw_vae(left, answers)
    first = answers["vma"]
    targets = first["results"]["number_of_targets"]
    label(
        left,
        f"{targets} unseen targets, the same at every point; K = {first['samples']}",
        CLASSES,
        "NLL, nats",
    )
    label(right, f"rise above C = {first['classes'][0]}, paired by target", CLASSES, "nats")
    label(found, "mass of q(a|x) on the own class; dotted: found", CLASSES, "share")
    found.set_ylim(0, 1.02)
    for axes in (left, right, found):
        of_classes(axes, first["classes"])
    handles, names = left.get_legend_handles_labels()
    figure.legend(
        handles, names, loc="lower left", bbox_to_anchor=(0.05, 0.05), ncols=3, frameon=False, fontsize=8.5
    )
    return sign(figure, answers)


def of_classes(axes: Axes, classes: list[int]) -> None:
    """An axis of classes on which doubling is always one step to the right."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(classes, [str(each) for each in classes])
    axes.minorticks_off()
    if legend := axes.get_legend():
        legend.remove()


def draw_sweep(axes: Axes, answer: Answer, colour: str, shift: float) -> None:
    """One model's line with its errors, and the line of an optimal model of disjoint classes."""
    points, kind = answer["results"]["points"], answer["model"]["kind"]
    classes = [shift * point["classes"] for point in points]
    name = f"{MODELS[kind]}, {answer['shots']} a class, {after(answer)}"
    series(axes, classes, [point["nll"] for point in points], colour, name)
    if kind == "vma":
        lowest = f"its NLL at C = {points[0]['classes']} + log C"
        axes.plot(classes, [point["line"] for point in points], color=colour, linewidth=1.1,
                  linestyle=DASHED, label=lowest)  # fmt: skip


def draw_rise(axes: Axes, answer: Answer, colour: str, shift: float) -> None:
    """How far the NLL is above that with the fewest classes, beside log C."""
    points = answer["results"]["points"]
    series(
        axes, [shift * point["classes"] for point in points], [point["rise"] for point in points], colour, ""
    )
    optimal = [point["line"] - points[0]["line"] for point in points]
    axes.plot([point["classes"] for point in points], optimal, color=INK, linewidth=1.0, linestyle=DASHED)
    axes.annotate("log C", (points[-1]["classes"], optimal[-1]), (-4, -12), textcoords="offset points", ha="right",
                  fontsize=8, color=INK)  # fmt: skip


def draw_own_class(axes: Axes, answer: Answer, colour: str, shift: float) -> None:
    """Mass of q(a|x) on the target's own class, and the share of targets whose class has the most; dashed, chance.

    The log C line alone does not show that addressing works: a model that ignores its memory is below it.
    """
    points = [point for point in answer["results"]["points"] if "own_class_mass" in point]
    classes = [shift * point["classes"] for point in points]
    if points:
        series(axes, classes, [point["own_class_mass"] for point in points], colour, "")
        axes.plot(
            classes, [1 / point["classes"] for point in points], color=INK, linewidth=0.8, linestyle=DASHED
        )
    if points and "own_class_first" in points[0]:
        first = [point["own_class_first"]["value"] for point in points]
        axes.plot(classes, first, color=colour, linewidth=1.4, linestyle=(0, (1, 1.5)))


def draw_vae(axes: Axes, answers: Answers) -> None:
    """The VAE, which has no memory to grow, as a horizontal line."""
    if "vae" in answers:
        level = answers["vae"]["results"]["points"][0]["nll"]["value"]
        name = f"{MODELS['vae']}, {after(answers['vae'])}"
        axes.axhline(level, color=COLOURS["vae"], linewidth=1.4, linestyle=(0, (2, 2)), label=name)


def shots_figure(answers: Answers) -> Figure:
    """Figure 5B: NLL against the examples of each class, all classes in memory; at 0 the VAE."""
    figure = new_figure(7.2, 5.0)
    axes = figure.add_axes((0.09, 0.14, 0.885, 0.79))
    sweeps = [(key, answer) for key, answer in answers.items() if answer["evaluation"] == "shots"]
    for shift, colour, (key, answer) in zip((0.0, 0.12, -0.12), SERIES, sweeps, strict=False):
        points = answer["results"]["points"]
        name = f"VMA trained with {key.removeprefix('vma ')} a class, {after(answer)}"
        series(
            axes,
            [point["shots"] + shift for point in points],
            [point["nll"] for point in points],
            colour,
            name,
        )
    if "vae" in answers:
        mean = answers["vae"]["results"]["points"][0]["nll"]
        series(axes, [0.0], [mean], COLOURS["vae"], f"{MODELS['vae']}, {after(answers['vae'])}")
    first = sweeps[0][1]
    axes.set_xticks([0, *[point["shots"] for point in first["results"]["points"]]])
    targets = first["results"]["number_of_targets"]
    title = f"all {first['classes']} test classes in memory; {targets} targets, K = {first['samples']}"
    label(axes, title, "items of each class in memory", "NLL, nats")
    return sign(figure, answers)
