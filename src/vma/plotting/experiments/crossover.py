"""The last paragraph of the paper: time of an update against |M|, for addresses and for soft attention."""

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from vma.plotting.experiments.style import Answers, label
from vma.plotting.style import AMBER, GREY, TEAL, new_figure

NAMES = {
    "vma": ("VMA, K = 4", TEAL, "-"),
    "soft, features": ("soft attention over features at every scale, K = 1", AMBER, "-"),
    "soft, pixels": ("soft attention over pixels, K = 1", AMBER, (0, (3, 2))),
}
CLOCKS = {"cpu": "its CPU time", "wall": "wall-clock"}


def crossover_figure(answers: Answers) -> Figure:
    """Milliseconds of one update, median of several, against |M|; the paper's crossing at 48 as a line."""
    answer = answers["timing"]
    figure = new_figure(7.2, 4.4)
    axes = figure.add_axes((0.1, 0.13, 0.875, 0.79))
    points = answer["results"]["points"]
    sizes = [point["memory"] for point in points]
    for key, (name, colour, style) in NAMES.items():
        times = [1000 * point["seconds"][key] for point in points]
        axes.plot(
            sizes, times, color=colour, linestyle=style, marker="o", markersize=4, linewidth=1.6, label=name
        )
    axes.axvline(48, color=GREY, linewidth=1, linestyle=(0, (5, 3)), label="paper: VMA faster from |M| = 48")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.margins(y=0.25)
    setting = f"{answer['targets']} targets, {answer['maps']} maps, {answer['threads']} thread(s)"
    label(
        axes,
        f"one update, {setting}; {CLOCKS[answer['clock']]}, median",
        "items in memory, |M|",
        "milliseconds",
    )
    return figure
