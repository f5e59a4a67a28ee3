"""Findings, "paper / ours ± error / updates / hours": each number with everything that it depends on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vma.evaluation.answers import Answer
from vma.evaluation.resumable import TargetResults
from vma.evaluation.statistics import Mean, Share
from vma.evaluation.trained_run import ModelDescription
from vma.plotting.wording import length, minus

Answers = Mapping[str, Answer[Any]]

NO_NUMBER = "no number"


@dataclass(frozen=True)
class Finding:
    """One number of ours beside the paper's.

    Attributes:
        what: What was measured.
        paper: What the paper says about it.
        value: Our number; None if `text` says it in words.
        error: Its standard error, if known.
        low: Lower end of its 95 % interval, for a share.
        high: Upper end.
        unit: `nats`, `%`, or another unit.
        text: Our result in words.
        line: Its line, if findings form a table such as Table 1.
        column: Its column there.
        updates: Updates of the run, awake.
        sleep_updates: Updates of the run, asleep.
        hours: Hours of training, awake and asleep.
        maps: Feature maps of the run; 0 if it has none.
        samples: K; 0 if there is none.
        targets: Number of targets or trials; 0 if there are none.
        protocol: How targets and memory were drawn.
        data: The data that it was measured on.
        answer: The file of the answer, beside the collection.
        command: The command that gives it again.
        start: The trained model that the run began with; empty for random weights.
    """

    what: str
    paper: str
    value: float | None = None
    error: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str = "nats"
    text: str = ""
    line: str = ""
    column: str = ""
    updates: int = 0
    hours: float = 0.0
    samples: int = 0
    targets: int = 0
    protocol: str = ""
    data: str = ""
    answer: str = ""
    command: str = ""
    maps: int = 0
    sleep_updates: int = 0
    start: str = ""


def finding(
    what: str,
    paper: str,
    found: float | Mean | Share | str,
    answer: Answer[Any],
    *,
    run: str = "",
    unit: str = "nats",
    line: str = "",
    column: str = "",
    targets: int = 0,
    samples: int | None = None,
) -> Finding:
    """What was found: a number with its error, a share with its interval, a bare number, or words.

    Args:
        what: What was measured.
        paper: What the paper says about it.
        found: The number, as the results of an evaluation hold it.
        answer: The answer that it comes from.
        run: The run that it belongs to, if the answer is about several.
        unit: Its unit.
        line: Its line in a table.
        column: Its column in a table.
        targets: Number of targets; the default is what the answer says.
        samples: K; the default is what the answer says.
    """
    model, results = answer.models.get(run, ModelDescription()), answer.results
    if not targets and isinstance(results, TargetResults):
        targets = results.number_of_targets
    return Finding(
        what,
        paper,
        **numbers(found),
        unit=unit,
        line=line,
        column=column,
        updates=model.updates,
        hours=model.hours,
        samples=answer.about.get("samples", 0) if samples is None else samples,
        targets=targets,
        protocol=answer.about.get("protocol", ""),
        data=f"{answer.data.name} {answer.data.split}".strip(),
        answer=answer.file,
        maps=model.maps,
        sleep_updates=model.sleep_updates,
        start=model.overrides.get("start", ""),
    )


def numbers(found: float | Mean | Share | str) -> dict[str, Any]:
    """The fields of a finding that hold the result; numbers that are not finite are left out."""
    match found:
        case str():
            return {"text": found}
        case Mean():
            kept = {"value": found.value, "error": found.error}
        case Share():
            kept = {"value": found.value, "low": found.low, "high": found.high}
        case _:
            kept = {"value": found}
    return {key: value if math.isfinite(value) else None for key, value in kept.items()}


def shown(each: Finding) -> str:
    """Our result as text, e.g. `72.7 ± 2.6 nats` or `91.3 % (88.0 to 93.8)`."""
    if each.text or each.value is None:
        return each.text or "not a finite number"
    if each.unit == "%":
        error = "" if each.error is None else f" ± {100 * each.error:.1f}"
        interval = "" if each.low is None else f" ({100 * each.low:.1f} to {100 * (each.high or 0):.1f})"
        return minus(f"{100 * each.value:.1f}{error} %{interval}")
    digits = 1 if abs(each.value) >= 20 else 2
    error = "" if each.error is None else f" ± {each.error:.{digits}f}"
    return minus(f"{each.value:.{digits}f}{error} {each.unit}".strip())


def training(each: Finding) -> str:
    """The training of the run, e.g. `6 000 updates, 32 maps, 1.03 h`; empty if no run is behind the number."""
    if not each.updates:
        return ""
    maps = f", {each.maps} maps" if each.maps else ""
    return f"{length(each.updates, each.sleep_updates, each.start)}{maps}, {each.hours:.2f} h"


def circumstances(each: Finding) -> str:
    """What a number depends on, e.g. `K = 1000, 144 targets, disjoint, omniglot 45-5/test`."""
    parts = [
        f"K = {each.samples}" if each.samples else "",
        f"{each.targets} targets" if each.targets else "",
        each.protocol,
        each.data,
    ]
    return ", ".join(part for part in parts if part)
