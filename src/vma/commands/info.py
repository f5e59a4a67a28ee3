"""`vma info`: what is known of a run, of a file, or of a model in the box."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from vma.evaluation.trained_run import describe_model
from vma.pretrained import card_of, pretrained_names
from vma.runs.folder import Run
from vma.runs.settings import TrainSettings
from vma.storage import load_model, model_file, read_about, read_model


def info(path: Path, /) -> None:
    """Describe a model: its data, updates and likelihood, and its configuration.

    Args:
        path: Folder of a run, file of a model, or name of one in the box (`vma models`).
    """
    file = model_file(path)
    config, tensors = read_model(file)
    console = Console(highlight=False, markup=False)
    console.print(
        f"{file}: {sum(tensor.numel() for tensor in tensors.values()):,} parameters", soft_wrap=True
    )
    for rows in (facts(path) or {"about": "nothing is written down of its training"}, asdict(config)):
        table = Table.grid(padding=(0, 2))
        for name, value in rows.items():
            table.add_row(f"  {name}", str(value))
        console.print(table)


def facts(path: Path) -> dict[str, str]:
    """What is known of a model's training, by name; empty if nothing is known."""
    if str(path) in pretrained_names():
        return card_facts(str(path))
    file = model_file(path)
    run = Run(file.parent)
    if file == run.model_file and run.settings_file.exists():
        return run_facts(run)
    return read_about(file)


def card_facts(name: str) -> dict[str, str]:
    """What the card of a model in the box says."""
    card = card_of(name)
    facts = {
        "data": card.data,
        "trained with": card.command,
        "updates": counts(card.updates, card.sleep_updates, card.hours),
    }
    return facts | {"NLL": f"{card.numbers[0]}: {card.numbers[0].what}"}


def run_facts(run: Run) -> dict[str, str]:
    """What the folder of a run says."""
    settings = run.settings()
    found = {"data": data_of(run, settings), "preset": settings.preset or "none"}
    if run.checkpoint_file.exists():
        model = describe_model(run, settings, load_model(run.model_file))
        found["updates"] = counts(model.updates, model.sleep_updates, model.hours)
        found["seed"] = str(model.seed)
        changed = {name: value for name, value in model.overrides.items() if name.split(".")[0] != "preset"}
        if settings.preset and changed:
            found["changed"] = ", ".join(f"{name} {value}" for name, value in changed.items())
    return found | likelihoods(run, settings)


def data_of(run: Run, settings: TrainSettings) -> str:
    """The images that a run was trained on."""
    chosen = settings.data
    given = ", given from Python" if run.content() else ""
    split = f", split {chosen.split}" if chosen.split else ""
    return f"{chosen.name}{given}{split}; {chosen.held_out} classes held out for validation"


def counts(updates: int, asleep: int, hours: float) -> str:
    """Updates and hours as text."""
    sleep = f" and {asleep} asleep" if asleep else ""
    return f"{updates}{sleep}, {hours:.2f} hours"


def likelihoods(run: Run, settings: TrainSettings) -> dict[str, str]:
    """The last validation of a run, and the best of what `vma evaluate` has found."""
    rows = [row for row in run.metrics() if row.get("valid_nll") is not None]
    found = {}
    if rows:
        last = rows[-1]
        what = f"held out, K = {settings.samples}, after update {last['update']}"
        found["NLL"] = f"{last['valid_nll']:.1f} nats: {what}"
    answers = [json.loads(path.read_text()) for path in sorted(run.folder.glob("evaluations/nll-*.json"))]
    if answers:
        found["NLL, evaluated"] = measured(max(answers, key=lambda each: each["samples"]))
    return found


def measured(answer: dict[str, Any]) -> str:
    """The likelihood that `vma evaluate` has found, with its targets and data."""
    nll, data = answer["results"]["nll"], answer["data"]
    images = f"{answer['results']['number_of_targets']} targets of {data['name']} {data['split']}"
    return f"{nll['value']:.1f} ± {nll['error']:.1f} nats: {images}, K = {answer['samples']}"
