"""Answers as tables, for reading in a terminal."""

from typing import Any

from rich.table import Table

from vma.evaluation.answers import Answer
from vma.evaluation.calibration import CalibrationResults
from vma.evaluation.classification import ClassifyResults
from vma.evaluation.episodes import NllResults
from vma.evaluation.json_values import plain
from vma.evaluation.novelty import MEASURES as NOVELTY
from vma.evaluation.novelty import NoveltyResults
from vma.evaluation.posterior import PosteriorResults
from vma.evaluation.recall import RecallResults
from vma.evaluation.statistics import Mean, Share
from vma.evaluation.sweeps import SweepResults

MEASURES = {
    "nll": "NLL (nats)",
    "reconstruction": "reconstruction",
    "kl_a": "KL_a",
    "kl_z": "KL_z",
    "entropy_q_a": "H(q(a|x))",
    "effective_samples": "effective samples",
}
OWN_CLASS = ("mass of own class", "own class first")


def table(answer: Answer[Any]) -> Table:
    """The table of an answer."""
    match answer.results:
        case NllResults() as results:
            return of_measures(answer, results)
        case SweepResults() as results:
            return of_sweep(answer, results)
        case ClassifyResults() as results:
            return of_tasks(answer, results)
        case CalibrationResults() as results:
            return of_calibration(answer, results)
        case NoveltyResults() as results:
            return of_novelty(answer, results)
        case PosteriorResults() as results:
            return of_posterior(answer, results)
        case RecallResults() as results:
            return of_recall(answer, results)
    return Table(title=title(answer), box=None, title_justify="left")


def title(answer: Answer[Any]) -> str:
    """Which model, on what: e.g. `omniglot-fewshot-4, 6000 updates, on omniglot 45-5/test, K = 1000`.

    A model that has slept has e.g. `10000 updates and 3333 asleep`.
    """
    model, data, about = answer.model, answer.data, answer.about
    asleep = f" and {model.sleep_updates} asleep" if model.sleep_updates else ""
    name = f"{model.preset or model.kind}, {model.updates} updates{asleep}, on {data.name} {data.split}"
    samples = f", K = {about['samples']}" if answer.evaluation in ("nll", "classes", "shots") else ""
    return f"{name}{samples}, protocol {about['protocol']}" if "protocol" in about else name + samples


def of_measures(answer: Answer[Any], results: NllResults) -> Table:
    """One line for each measure."""
    shown, values = new_table(answer, "", "mean over targets", "± standard error"), plain(results)
    for key, name in MEASURES.items():
        shown.add_row(name, f"{values[key]['value']:.2f}", f"{values[key]['error']:.2f}")
    for key in ("entropy_p_a", "entropy_average_q_a", "items_in_use"):
        if key in values:
            shown.add_row(key.replace("_", " "), f"{values[key]:.4g}", "")
    shown.add_row("targets", str(results.number_of_targets), "")
    return shown


def of_sweep(answer: Answer[Any], results: SweepResults) -> Table:
    """One line for each setting."""
    head = ("classes", "shots", "|M|", "NLL", "±", "log C line", "rise, paired", "±", "KL_a")
    first = results.points[0]
    named = zip(OWN_CLASS, (first.own_class_mass, first.own_class_first), strict=True)
    shown = new_table(answer, *head, *(name for name, own in named if own is not None))
    for p in results.points:
        numbers = (p.nll.value, p.nll.error, p.line, p.rise.value, p.rise.error, p.kl_a.value)
        own = (each.value for each in (p.own_class_mass, p.own_class_first) if each is not None)
        cells = [f"{value:.2f}" for value in (*numbers, *own)]
        shown.add_row(str(p.classes), str(p.shots), str(p.memory), *cells)
    return shown


def of_tasks(answer: Answer[Any], results: ClassifyResults) -> Table:
    """One line for each task."""
    columns = ("by q(a|x)", "95 % interval", "by likelihood", "95 % interval")
    shown = new_table(answer, "ways", "shots", "classes within", *columns)
    for task in results.tasks:
        likelihood = share_cells(task.by_likelihood) if answer.about["samples"] else ("", "")
        cells = (*share_cells(task.by_address), *likelihood)
        shown.add_row(str(task.ways), str(task.shots), answer.about["within"], *cells)
    return shown


def share_cells(share: Share) -> tuple[str, str]:
    """A share and its interval."""
    return f"{share.value:.1%}", f"{share.low:.1%} – {share.high:.1%}"


def of_calibration(answer: Answer[Any], results: CalibrationResults) -> Table:
    """One line for each task and rule."""
    columns = (
        "right",
        "95 % interval",
        "calibration error",
        "by chance",
        "log p(right class)",
        "±",
        "CPU ms",
    )
    shown = new_table(answer, "ways", "shots", "classes within", "rule", *columns)
    for task in results.tasks:
        for name, own in task.rules.items():
            errors = (own.calibration_error, own.error_by_chance, own.log_prob.value, own.log_prob.error)
            cells = (
                *share_cells(own.accuracy),
                *(f"{value:.3f}" for value in errors),
                f"{own.milliseconds:.1f}",
            )
            shown.add_row(str(task.ways), str(task.shots), answer.about["within"], name, *cells)
    return shown


def of_novelty(answer: Answer[Any], results: NoveltyResults) -> Table:
    """One line for each measure, and for each kind of error at the threshold that users get."""
    shown = new_table(answer, "", "area under curve", "±", "at the threshold", "95 % interval")
    for key, name in NOVELTY.items():
        area = results.areas[key]
        shown.add_row(name, f"{area.value:.3f}", f"{area.error:.3f}", "", "")
    shares = {"false alarms": results.false_alarms, "found": results.found, "missed": results.missed}
    for name, share in shares.items():
        interval = f"{share.low:.1%} – {share.high:.1%}"
        shown.add_row(name, "", "", f"{share.value:.1%}", interval)
    return shown


def of_posterior(answer: Answer[Any], results: PosteriorResults) -> Table:
    """One line for targets whose class is in memory, and one for the others."""
    shown = new_table(answer, "target's class", "log p(x|M)", "H(q(a|x))", "KL_a")
    for name, look in (("in memory", results.in_memory), ("absent", results.absent)):
        shown.add_row(name, *(mean_cell(mean) for mean in (look.log_p, look.entropy, look.kl_a)))
    shown.add_row("found", f"{results.found.value:.1%}", "", "")
    areas = (f"{area:.2f}" for area in (results.novelty_auc, results.novelty_auc_entropy))
    shown.add_row("novelty, area under curve", *areas, "")
    return shown


def of_recall(answer: Answer[Any], results: RecallResults) -> Table:
    """A line for each measure."""
    shown, values = new_table(answer, "", "mean over targets", "± standard error"), plain(results)
    own = "others of its label" if answer.about["leave_out"] else "the item itself"
    for key, name in {
        **MEASURES, "own_mass": f"mass on {own}", "own_first": f"{own} first"
    }.items():  # fmt: skip
        shown.add_row(name, f"{values[key]['value']:.2f}", f"{values[key]['error']:.2f}")
    shown.add_row("items", f"{results.items:,}", "")
    shown.add_row("targets", str(results.number_of_targets), "")
    return shown


def mean_cell(mean: Mean) -> str:
    """E.g. `1.23 ± 0.04`."""
    return f"{mean.value:.2f} ± {mean.error:.2f}"


def new_table(answer: Answer[Any], *columns: str) -> Table:
    """An empty table with the answer's title."""
    shown = Table(title=title(answer), box=None, title_justify="left", title_style="bold", padding=(0, 2))
    for column in columns:
        shown.add_column(column, justify="right" if column else "left")
    return shown
