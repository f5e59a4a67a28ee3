"""Answers as rows, and rows as CSV or JSON."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from vma.fewshot.scores import Score
from vma.files import write_atomically
from vma.names import cell

Row = Mapping[str, Any]


def score_rows(names: Sequence[str], scores: Sequence[Score]) -> list[Row]:
    """A row for each image."""
    return [{"image": name, **asdict(score)} for name, score in zip(names, scores, strict=True)]


def write_rows(path: Path | None, rows: Sequence[Row]) -> None:
    """Write rows to a .csv or .json file; do nothing if `path` is None."""
    if path is None:
        return
    is_csv = path.suffix.lower() == ".csv"
    write_atomically(path, as_csv(rows) if is_csv else msgspec.json.format(msgspec.json.encode(rows)) + b"\n")


def as_csv(rows: Sequence[Row]) -> bytes:
    """One line for each row; nested values get a column for each of their parts."""
    flat = [flatten(row) for row in rows]
    text = io.StringIO()
    writer = csv.DictWriter(
        text, list(dict.fromkeys(key for row in flat for key in row)), lineterminator="\n"
    )
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue().encode()


def flatten(row: Row) -> dict[str, Any]:
    """`probabilities` as columns p(class); `items` as "number label share" and their files, with semicolons."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if key == "probabilities":
            flat |= {f"p({label})": share for label, share in value.items()}
        elif key == "items":
            flat[key] = "; ".join(item_text(each) for each in value)
            flat["sources"] = cell("; ".join(each["source"] or "" for each in value))
        else:
            flat[key] = cell(value) if isinstance(value, str) else value
    return flat


def item_text(item: Row) -> str:
    """An item's number, its label if it has one, and its share."""
    label = "" if item["label"] is None else f" {item['label']}"
    return f"{item['item']}{label} {item['share']:.4g}"
