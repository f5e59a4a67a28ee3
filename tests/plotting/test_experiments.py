"""Figures from saved answers: axes, labels and lines are those of the JSON, and the PNG shows something."""

import io
import math
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from tests.helpers.small_experiments import GOLDEN, NAMES, papers_tasks
from vma.plotting.experiments.posterior import choose
from vma.plotting.style import png
from vma.reproduce.registry import EXPERIMENTS

AXES: dict[str, list[tuple[str, str]]] = {
    "fig2a-recall": [("updates", "nats"), ("updates", "nats")],
    "fig2b-learned-mnist": [("learned items |M|", "KL(q(a|x) ‖ p(a)), nats")],
    "fig3-posterior": [("", "q(a|x)")],
    "fig4a-oneshot": [("", "")],
    "fig4b-kl-breakdown": [("items of each class in memory", "nats")] * 3,
    "fig5a-classes": [("classes in memory, C", "NLL, nats"), ("classes in memory, C", "nats")],
    "fig5b-shots": [("items of each class in memory", "NLL, nats")],
    "table1-gmn": [("", "")] * 4,
    "text-omniglot28": [("updates", "nats")],
    "text-classification": [("", "right, %")],
    "text-flat-prior": [("updates", "nats"), ("nats; lower is better", "")],
    "text-similarities": [("updates", "nats"), ("nats; lower is better", "")],
    "text-32-classes": [("updates", "nats"), ("nats; lower is better", "")],
    "text-crossover": [("items in memory, |M|", "milliseconds")],
    "supp-curves": [("updates", "nats")] * 3,
    "estimators": [("updates", "NLL on held-out classes, nats"), ("minutes of training", "")],
}


def draw(name: str, answers: dict[str, Any] | None = None) -> Figure:
    return EXPERIMENTS[name].draw(answers or GOLDEN[name])


def lines(figure: Figure) -> list[list[float]]:
    """What every line and error bar's line shows, over all axes."""
    return [np.asarray(line.get_ydata(), dtype=float).tolist() for axes in figure.axes for line in axes.lines]


def words(figure: Figure) -> str:
    """All text of a figure."""
    legends = [legend for axes in figure.axes if (legend := axes.get_legend())] + list(figure.legends)
    texts = [text for axes in figure.axes for text in axes.texts] + list(figure.texts)
    texts += [text for legend in legends for text in legend.get_texts()]
    titles = [axes.get_title(loc) for axes in figure.axes for loc in ("left", "center", "right")]
    return "\n".join([*[text.get_text() for text in texts], *titles])


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_answer_becomes_a_picture_with_labelled_axes(name: str) -> None:
    figure = draw(name)
    labels = [(axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes]
    for pair in set(AXES[name]):
        assert labels.count(pair) >= AXES[name].count(pair), (pair, labels)
    picture = np.asarray(Image.open(io.BytesIO(png(figure))).convert("L"))
    assert (picture < 128).mean() > 0.001
    assert picture.std() > 5


def test_the_recall_curve_is_that_of_the_json() -> None:
    rows = GOLDEN["fig2a-recall"]["curve"]["results"]["rows"]
    figure = draw("fig2a-recall")
    for key in ("nll", "kl_a", "kl_z"):
        assert [row[key] for row in rows] in lines(figure)
    level = math.log(GOLDEN["fig2a-recall"]["curve"]["results"]["memory"])
    assert [level, level] in lines(figure)
    assert f"{level:.2f}" in words(figure)


def test_figure_5a_shows_nll_the_log_c_line_and_the_paired_rise() -> None:
    answers = GOLDEN["fig5a-classes"]
    figure = draw("fig5a-classes")
    for key in ("vma", "vma 16", "soft"):
        points = answers[key]["results"]["points"]
        assert [point["nll"]["value"] for point in points] in lines(figure)
        assert [point["rise"]["value"] for point in points] in lines(figure)
    points = answers["vma"]["results"]["points"]
    assert [point["line"] for point in points] in lines(figure)
    assert points[-1]["line"] - points[0]["line"] == pytest.approx(math.log(4), abs=1e-3)
    for key in ("vma", "vma 16"):
        points = answers[key]["results"]["points"]
        assert [point["own_class_mass"]["value"] for point in points] in lines(figure)
    assert [axes.get_xscale() for axes in figure.axes] == ["log", "log", "log"]
    for word in ("VMA, 1 a class, after 4 updates", "soft attention, 2 a class", "VAE, no memory", "log C"):
        assert word in words(figure)


def test_figure_5a_without_its_baselines() -> None:
    answers = {key: value for key, value in GOLDEN["fig5a-classes"].items() if key.startswith("vma")}
    assert "soft" not in words(draw("fig5a-classes", answers))


def test_figure_5b_has_the_vae_at_zero() -> None:
    figure = draw("fig5b-shots")
    level = GOLDEN["fig5b-shots"]["vae"]["results"]["points"][0]["nll"]["value"]
    at_zero = [line for line in figure.axes[0].lines if list(line.get_xdata()) == [0.0]]
    assert [level] in [list(line.get_ydata()) for line in at_zero]
    assert "trained with 8 a class" in words(figure)


def test_figure_4b_has_bars_and_the_papers_ends() -> None:
    figure = draw("fig4b-kl-breakdown")
    for axes, key, ends in zip(
        figure.axes, ("kl_a", "kl_z", "nll"), ([2.0, 4.5], [28.2, 21.8], [75.1, 69.1]), strict=True
    ):
        heights = [patch.get_height() for patch in axes.patches]
        assert heights == [
            GOLDEN["fig4b-kl-breakdown"][s]["results"][key]["value"] for s in ("1", "4", "8", "16")
        ]
        assert ends in [list(line.get_ydata()) for line in axes.lines]


def test_figure_3_shows_found_mistaken_and_absent() -> None:
    kinds = ["absent", "found", "found", "mistaken", "found", "absent"]
    chosen = choose([{"kind": kind, "index": i} for i, kind in enumerate(kinds)])
    assert [each["index"] for each in chosen] == [1, 2, 3, 0]
    assert choose([{"kind": "found", "index": 0}]) == [{"kind": "found", "index": 0}]
    shown = words(draw("fig3-posterior"))
    assert "its class is not in memory" in shown
    assert "log p(x|M)" in shown


def test_classification_has_the_papers_numbers_for_the_papers_tasks() -> None:
    assert [91.0, 90.0] in lines(draw("text-classification", papers_tasks()))


def test_the_crossover_is_drawn_beside_48() -> None:
    figure = draw("text-crossover")
    points = GOLDEN["text-crossover"]["timing"]["results"]["points"]
    for key in ("vma", "soft, features", "soft, pixels"):
        assert [1000 * point["seconds"][key] for point in points] in lines(figure)
    assert "|M| = 48" in words(figure)


def test_every_estimator_has_a_line_on_both_panels() -> None:
    figure = draw("estimators")
    assert [len(axes.lines) for axes in figure.axes] == [9, 9]
    assert "without-replacement" in words(figure)


def test_table_1_shows_every_cell() -> None:
    shown = words(draw("table1-gmn"))
    for cell in GOLDEN["table1-gmn"]["vma"]["results"]["cells"]:
        assert f"{cell['nll']['value']:.1f}" in shown
