"""Experiments at a tiny size, as a user calls them, and answers that were saved once."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from vma.commands.reproduce import reproduce_command
from vma.evaluation.answers import Answer, answer_of
from vma.reproduce.pipeline import RESULTS
from vma.reproduce.registry import EXPERIMENTS

GOLDEN: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "golden.json").read_text())
NAMES = list(EXPERIMENTS)


def reproduce_tiny(name: str, root: Path, *arguments: str) -> Path:
    """`vma reproduce NAME --tiny` in float32 with one thread, as users do; the path of its JSON."""
    before, threads = torch.get_default_dtype(), torch.get_num_threads()
    torch.set_default_dtype(torch.float32)
    places = ("--out", str(root / "results"), "--runs", str(root / "runs"))
    try:
        reproduce_command([name, "--tiny", "--threads", "1", "--device", "cpu", *places, *arguments])
    finally:
        torch.set_default_dtype(before)
        torch.set_num_threads(threads)
    return root / "results" / f"{name}.json"


def papers_tasks() -> dict[str, Any]:
    """Golden answers on classification, as if their tasks were two of the paper's."""
    answers = {key: {**value} for key, value in GOLDEN["text-classification"].items()}
    for answer in answers.values():
        first, second = answer["results"]["tasks"]
        answer["results"] = {"tasks": [{**first, "ways": 5, "shots": 1}, {**second, "ways": 20, "shots": 5}]}
    return answers


def collection(root: Path, name: str, tiny: bool = False, **changes: Any) -> Path:
    """A collection of golden answers, written as `vma reproduce` would."""
    from vma.reproduce.experiment import Scale
    from vma.reproduce.pipeline import collection as record

    answers = {}
    for number, (key, values) in enumerate(GOLDEN[name].items()):
        file = f"{name}/{values['evaluation']}-{number}.json"
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(json.dumps({k: v for k, v in values.items() if k != "file"}))
        answers[key] = answer_of(values, RESULTS, file)
    experiment = EXPERIMENTS[name]
    found = record(experiment, Scale(tiny=tiny), answers, f"vma reproduce {name}")
    path = root / f"{name}.json"
    path.write_text(json.dumps({**asdict(found), **changes}))
    return path


def typed(answers: dict[str, dict[str, Any]]) -> dict[str, Answer[Any]]:
    """Answers as they are read from their files."""
    return {key: answer_of(values, RESULTS) for key, values in answers.items()}
