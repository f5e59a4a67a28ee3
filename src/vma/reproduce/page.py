"""All experiments on one page, as self-contained HTML and as Markdown; every number comes from a JSON file."""

import os
import textwrap
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from vma.errors import InputError
from vma.files import write_atomically
from vma.plotting.embedding import data_uri
from vma.reproduce.findings import Finding, circumstances, shown, training
from vma.reproduce.pipeline import Collection, read_collection
from vma.reproduce.registry import EXPERIMENTS
from vma.reproduce.verdicts import Verdict, deciding_finding, read_verdicts


@dataclass(frozen=True)
class Pivot:
    """Findings as a table: for each line's name its cells, None where there is no finding."""

    columns: list[str]
    lines: dict[str, list[Finding | None]]


@dataclass(frozen=True)
class Section:
    """One experiment on the page.

    Attributes:
        record: Its collection, NAME.json.
        findings: Its findings, except those in `pivot`.
        pivot: Findings that form a table, if there are any.
        json: NAME.json, as a path.
        picture: NAME.png, as a path.
    """

    record: Collection
    findings: list[Finding]
    pivot: Pivot | None
    json: Path
    picture: Path


@dataclass(frozen=True)
class Judged:
    """A verdict, with the finding and the section that it is about."""

    verdict: Verdict
    finding: Finding
    section: Section


def write_pages(results: Path, out: Path, markdown: Path) -> list[Path]:
    """Write both pages from the collections in the folder `results`, and return their paths."""
    values = contents(results)
    for path, template in ((out, "template.html"), (markdown, "template.md")):
        write_atomically(path, render(template, path.absolute().parent, values).encode())
    return [out, markdown]


def contents(results: Path) -> dict[str, Any]:
    """The contents of the pages: every experiment in the folder `results`, the missing ones, and the verdicts."""
    found = sections(results)
    names = {each.record.experiment for each in found}
    missing = [name for name in EXPERIMENTS if name not in names]
    return {
        "sections": found,
        "missing": missing,
        "verdicts": judged(read_verdicts(results), found),
    }


def sections(results: Path) -> list[Section]:
    """Every experiment that has a collection, in the order of the paper."""
    paths = [path for name in EXPERIMENTS if (path := results / f"{name}.json").exists()]
    if not paths:
        raise InputError(f"There are no results in {results}: make some with 'vma reproduce NAME'.")
    return [section(path) for path in paths]


def section(path: Path) -> Section:
    """The section of one collection; one made at a tiny size is not a result, and is refused."""
    record = read_collection(path)
    if record.tiny:
        raise InputError(
            f"{path} was made with --tiny, so it is no result: make it again without, or delete it."
        )
    single, in_table = (
        [each for each in record.rows if bool(each.line) == wanted] for wanted in (False, True)
    )
    return Section(record, single, pivot_of(in_table), path, path.with_suffix(".png"))


def pivot_of(findings: list[Finding]) -> Pivot | None:
    """Findings as a table of lines and columns, in order of appearance."""
    if not findings:
        return None
    columns = list(dict.fromkeys(each.column for each in findings))
    cells = {(each.line, each.column): each for each in findings}
    names = dict.fromkeys(each.line for each in findings)
    return Pivot(columns, {name: [cells.get((name, column)) for column in columns] for name in names})


def judged(verdicts: list[Verdict], found: list[Section]) -> list[Judged]:
    """Every verdict on an experiment that was run, with the deciding finding."""
    named = {each.record.experiment: each for each in found}
    return [
        Judged(verdict, deciding_finding(verdict, section.record.rows), section)
        for verdict in verdicts
        if (section := named.get(verdict.experiment))
    ]


def render(template: str, folder: Path, values: dict[str, Any]) -> str:
    """A page with these values as text; links are relative to `folder`, which will hold the page."""
    environment = Environment(
        autoescape=template.endswith(".html"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {
        "shown": shown,
        "circumstances": circumstances,
        "training": training,
        "wrapped": lambda text: textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False),
        "cell": lambda text: str(text).replace("|", "\\|"),
        "link": lambda path: Path(os.path.relpath(Path(path).absolute(), folder)).as_posix(),
        "embedded": lambda path: data_uri(Path(path).read_bytes()),
    }
    source = files("vma.reproduce").joinpath(template).read_text(encoding="utf-8")
    return environment.from_string(source).render(**values)
