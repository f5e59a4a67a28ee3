"""Answers as rows, and rows as CSV or JSON."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from vma.fewshot.explanation import Explanation
from vma.fewshot.image_memory import ImageMemory
from vma.fewshot.recognition import Recognition
from vma.fewshot.scores import Score
from vma.files import write_atomically

Row = Mapping[str, Any]


def recognition_rows(names: Sequence[str], found: Sequence[Recognition], memory: ImageMemory) -> list[Row]:
    """A row for each image: its class, the probability of every class, and the items that decided."""
    rows: list[Row] = []
    for name, each in zip(names, found, strict=True):
        items = [{"item": i, "label": memory.labels[i], "share": share} for i, share in each.items]
        probabilities = {label: each.probabilities[label] for label in dict.fromkeys(memory.names)}
        rows.append({"image": name, "label": each.label, "probabilities": probabilities, "items": items})
    return rows


def score_rows(names: Sequence[str], scores: Sequence[Score]) -> list[Row]:
    """A row for each image."""
    return [{"image": name, **asdict(score)} for name, score in zip(names, scores, strict=True)]


def explanation_json(found: Explanation) -> bytes:
    """All numbers of an explanation."""
    numbers = {
        "label": found.label,
        "probabilities": found.probabilities,
        "log_p": found.log_p,
        "kl_a": found.kl_a,
        "kl_z": found.kl_z,
        "top": [asdict(each) for each in found.top],
        "q": found.q.tolist(),
        "target": found.target.tolist(),
        "reconstruction": found.reconstruction.tolist(),
    }
    return msgspec.json.format(msgspec.json.encode(numbers)) + b"\n"


def write_rows(path: Path | None, rows: Sequence[Row]) -> None:
    """Write rows to a .csv or .json file; nothing where `path` is None."""
    if path is None:
        return
    is_csv = path.suffix.lower() == ".csv"
    write_atomically(path, as_csv(rows) if is_csv else msgspec.json.format(msgspec.json.encode(rows)) + b"\n")


def as_csv(rows: Sequence[Row]) -> bytes:
    """One line for each row; what is nested gets a column for each of its parts."""
    flat = [flatten(row) for row in rows]
    text = io.StringIO()
    writer = csv.DictWriter(
        text, list(dict.fromkeys(key for row in flat for key in row)), lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue().encode()


def flatten(row: Row) -> dict[str, Any]:
    """`probabilities` as columns p(class), `items` as "number label share", separated by semicolons."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if key == "probabilities":
            flat |= {f"p({label})": share for label, share in value.items()}
        elif key == "items":
            flat[key] = "; ".join(item_text(each) for each in value)
        else:
            flat[key] = value
    return flat


def item_text(item: Row) -> str:
    """An item's number, its label if it has one, and its share."""
    label = "" if item["label"] is None else f" {item['label']}"
    return f"{item['item']}{label} {item['share']:.4g}"
