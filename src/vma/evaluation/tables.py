"""Answers as tables, for reading in a terminal."""

from typing import Any

from rich.table import Table

from vma.evaluation.novelty import MEASURES as NOVELTY

MEASURES = {
    "nll": "NLL (nats)",
    "reconstruction": "reconstruction",
    "kl_a": "KL_a",
    "kl_z": "KL_z",
    "entropy_q_a": "H(q(a|x))",
    "effective_samples": "effective samples",
}
OWN_CLASS = {"own_class_mass": "mass of own class", "own_class_first": "own class first"}


def table(found: dict[str, Any]) -> Table:
    """The table of an answer."""
    results = found["results"]
    match found["evaluation"]:
        case "nll":
            return of_measures(found, results)
        case "classes" | "shots":
            return of_sweep(found, results)
        case "classify":
            return of_tasks(found, results)
        case "calibration":
            return of_calibration(found, results)
        case "novelty":
            return of_novelty(found, results)
        case "posterior":
            return of_posterior(found, results)
    return Table(title=title(found), box=None, title_justify="left")


def title(found: dict[str, Any]) -> str:
    """Which model, on what: e.g. `omniglot-fewshot-4, 6000 updates, on omniglot 45-5/test, K = 1000`.

    A model that has slept has e.g. `10000 updates and 3333 asleep`.
    """
    model, data = found["model"], found["data"]
    asleep = f" and {model['sleep_updates']} asleep" if model.get("sleep_updates") else ""
    length = f"{model['updates']} updates{asleep}"
    name = f"{model['preset'] or model['kind']}, {length}, on {data['name']} {data['split']}"
    samples = f", K = {found['samples']}" if found["evaluation"] in ("nll", "classes", "shots") else ""
    return f"{name}{samples}, protocol {found['protocol']}" if "protocol" in found else name + samples


def of_measures(found: dict[str, Any], results: dict[str, Any]) -> Table:
    """A line for each measure."""
    shown = new_table(found, "", "mean over targets", "± standard error")
    for key, name in MEASURES.items():
        shown.add_row(name, f"{results[key]['value']:.2f}", f"{results[key]['error']:.2f}")
    for key in ("entropy_p_a", "entropy_average_q_a", "items_in_use"):
        if key in results:
            shown.add_row(key.replace("_", " "), f"{results[key]:.4g}", "")
    shown.add_row("targets", str(results["number_of_targets"]), "")
    return shown


def of_sweep(found: dict[str, Any], results: dict[str, Any]) -> Table:
    """A line for each setting."""
    addresses = [name for name in OWN_CLASS if name in results["points"][0]]
    head = ("classes", "shots", "|M|", "NLL", "±", "log C line", "rise, paired", "±", "KL_a")
    shown = new_table(found, *head, *(OWN_CLASS[name] for name in addresses))
    for p in results["points"]:
        numbers = (p["nll"]["value"], p["nll"]["error"], p["line"], p["rise"]["value"], p["rise"]["error"])
        own = (p[name]["value"] for name in addresses)
        cells = [f"{value:.2f}" for value in (*numbers, p["kl_a"]["value"], *own)]
        shown.add_row(str(p["classes"]), str(p["shots"]), str(p["memory"]), *cells)
    return shown


def of_tasks(found: dict[str, Any], results: dict[str, Any]) -> Table:
    """A line for each task."""
    columns = ("by q(a|x)", "95 % interval", "by likelihood", "95 % interval")
    shown = new_table(found, "ways", "shots", "classes within", *columns)
    for task in results["tasks"]:
        cells = []
        for form in ("by_address", "by_likelihood"):
            share = task[form]
            known = form == "by_address" or found["samples"]
            cells += (
                [f"{share['value']:.1%}", f"{share['low']:.1%} – {share['high']:.1%}"] if known else ["", ""]
            )
        shown.add_row(str(task["ways"]), str(task["shots"]), found["within"], *cells)
    return shown


def of_calibration(found: dict[str, Any], results: dict[str, Any]) -> Table:
    """A line for each task and rule."""
    columns = (
        "right",
        "95 % interval",
        "calibration error",
        "by chance",
        "log p(right class)",
        "±",
        "CPU ms",
    )
    shown = new_table(found, "ways", "shots", "classes within", "rule", *columns)
    for task in results["tasks"]:
        for name, own in task["rules"].items():
            right, log_prob = own["accuracy"], own["log_prob"]
            cells = [f"{right['value']:.1%}", f"{right['low']:.1%} – {right['high']:.1%}"]
            cells += [f"{own[key]:.3f}" for key in ("calibration_error", "error_by_chance")]
            cells += [f"{log_prob['value']:.3f}", f"{log_prob['error']:.3f}", f"{own['milliseconds']:.1f}"]
            shown.add_row(str(task["ways"]), str(task["shots"]), found["within"], name, *cells)
    return shown


def of_novelty(found: dict[str, Any], results: dict[str, Any]) -> Table:
    """A line for each measure, and for each kind of error at the threshold that a user gets."""
    shown = new_table(found, "", "area under curve", "±", "at the threshold", "95 % interval")
    for key, name in NOVELTY.items():
        area = results["areas"][key]
        shown.add_row(name, f"{area['value']:.3f}", f"{area['error']:.3f}", "", "")
    for key in ("false_alarms", "found", "missed"):
        share = results[key]
        interval = f"{share['low']:.1%} – {share['high']:.1%}"
        shown.add_row(key.replace("_", " "), "", "", f"{share['value']:.1%}", interval)
    return shown


def of_posterior(found: dict[str, Any], results: dict[str, Any]) -> Table:
    """A line for targets whose class is in memory, and one for those whose is not."""
    shown = new_table(found, "target's class", "log p(x|M)", "H(q(a|x))", "KL_a")
    for key, name in (("in_memory", "in memory"), ("absent", "absent")):
        means = [results[key][measure] for measure in ("log_p", "entropy", "kl_a")]
        shown.add_row(name, *(f"{mean['value']:.2f} ± {mean['error']:.2f}" for mean in means))
    shown.add_row("found", f"{results['found']['value']:.1%}", "", "")
    areas = [f"{results[key]:.2f}" for key in ("novelty_auc", "novelty_auc_entropy")]
    shown.add_row("novelty, area under curve", *areas, "")
    return shown


def new_table(found: dict[str, Any], *columns: str) -> Table:
    """An empty table with the answer's title."""
    shown = Table(title=title(found), box=None, title_justify="left", title_style="bold", padding=(0, 2))
    for column in columns:
        shown.add_column(column, justify="right" if column else "left")
    return shown
