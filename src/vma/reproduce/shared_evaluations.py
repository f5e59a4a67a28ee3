"""Evaluations that several experiments make beyond those of `vma evaluate`: learning curves, paired comparisons."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from vma.evaluation.episodes import NllOptions, groups_of, nll
from vma.evaluation.resumable import Evaluation, Row
from vma.evaluation.statistics import mean_of
from vma.evaluation.trained_run import TrainedRun
from vma.reproduce.experiment import OpenRuns, PlannedEvaluation

POINTS = 150  # of a curve
KEPT = ("nll", "kl_a", "kl_z", "entropy_q_a", "entropy_p_a", "valid_nll")


def curve(key: str) -> PlannedEvaluation:
    """The learning curve of a run: its metrics, averaged over windows so that few points are left."""

    def prepare(open_runs: OpenRuns) -> Evaluation:
        trained = open_runs.trained(key)
        rows = [row for row in open_runs.runs[key].metrics() if "nll" in row]  # awake
        about = {
            "model": trained.about["model"],
            "protocol": f"in training on {trained.settings.data.name}",
            "samples": trained.settings.samples,
            "lines": len(rows),
            "points": POINTS,
        }
        found = {"rows": thinned(rows), "memory": memory_size(trained), "K": trained.settings.samples}
        return Evaluation("curve", about, 1, lambda number: found, lambda parts: parts[0])

    return PlannedEvaluation((key,), prepare)


def thinned(rows: Sequence[Mapping[str, Any]], points: int = POINTS) -> list[dict[str, Any]]:
    """Means over windows of equal size, at most `points` of them; each at its last update."""
    size = max(1, math.ceil(len(rows) / points))
    return [window(rows[start : start + size]) for start in range(0, len(rows), size)]


def window(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The mean of each metric over the rows that have it."""
    having = {key: [row[key] for row in rows if row.get(key) is not None] for key in KEPT}
    means = {key: round(sum(values) / len(values), 5) for key, values in having.items() if values}
    return {"update": rows[-1]["update"], "seconds": rows[-1]["seconds"], **means}


def memory_size(trained: TrainedRun) -> int:
    """|M| in training; 0 where there was no memory."""
    episode, model = trained.settings.episode, trained.settings.model
    if model.model == "vae":
        return 0
    if model.learned_items or episode.kind == "recall":
        return model.learned_items or episode.shots
    return episode.classes * episode.shots if episode.kind == "few-shot" else 0


def comparison(keys: Sequence[str], options: NllOptions) -> PlannedEvaluation:
    """−log p(x|M) of the same targets under several models, and the differences to the first, paired by target."""

    def prepare(open_runs: OpenRuns) -> Evaluation:
        parts = {key: nll(open_runs.trained(key), options) for key in keys}
        first = parts[keys[0]]
        models = {key: part.about["model"] for key, part in parts.items()}
        about = {**{name: value for name, value in first.about.items() if name != "model"}, "models": models}

        def part(number: int) -> Row:
            rows = {key: part.part(number) for key, part in parts.items()}
            return {
                "models": {key: row["targets"] for key, row in rows.items()},
                "groups": rows[keys[0]]["groups"],
            }

        return Evaluation("comparison", about, first.parts, part, compared)

    return PlannedEvaluation(tuple(keys), prepare)


def compared(rows: list[Row]) -> dict[str, Any]:
    """Means for each model, and the NLL it has above the first model's, target by target."""
    names, groups = rows[0]["models"], groups_of(rows)
    pooled = {
        key: {name: [value for row in rows for value in row["models"][key][name]] for name in names[key]}
        for key in names
    }
    first = pooled[next(iter(names))]["nll"]
    models = {}
    for key, values in pooled.items():
        above = [ours - theirs for ours, theirs in zip(values["nll"], first, strict=True)]
        means = {name: asdict(mean_of(each, groups)) for name, each in values.items()}
        models[key] = {**means, "above_first": asdict(mean_of(above, groups))}
    return {"number_of_targets": len(first), "models": models}
