"""The tables of docs/performance.md, from the JSON of `python -m benchmarks.speed`.

python -m benchmarks.speed step --json | tail -n 1 > results/bench-step-64.json    # and so on, see the page
python -m benchmarks.performance_page
"""

import json
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.evaluate import least_and_most
from benchmarks.speed.report import described, seconds, size
from vma.files import write_atomically

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs/performance.md", ROOT / "results"
BEGIN, END = "<!-- tables: python -m benchmarks.performance_page -->", "<!-- end of tables -->"
Result = dict[str, Any]
WIDTH = 100  # of a line of text


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def wrapped(text: str) -> str:
    """A paragraph, or an item of a list, in lines of at most 100 characters."""
    after = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, WIDTH, subsequent_indent=after, break_long_words=False, break_on_hyphens=False)


def machine(found: Result) -> str:
    """One line on where and how a result was measured."""
    settings = found["settings"]
    clock = "" if settings["clock"] == "wall" else ", processor time on a machine in use"
    return wrapped(f"{described(found['machine'])}; medians of {settings['repeats']} rounds{clock}.")


def step(found: Result) -> str:
    """One update beside its alternatives."""
    rate, ours = found["sgemm_flops_per_second"], found["seconds"]["vma"]
    speedups = {
        "vma": 1.0,
        "textbook": found["speedup_vs_textbook"],
        "textbook, channels_last": found["speedup_vs_textbook_channels_last"],
        "memory per target": found["speedup_vs_per_target_memory"],
    }
    shares = {name: found["flops"][name] / rate / found["seconds"][name] for name in speedups}
    shares["vma"] = found["fraction_of_sgemm"]  # the median of the rounds' own shares
    rows = [
        [name, seconds(found["seconds"][name]), f"{times:.2f} ×", f"{found['flops'][name] / 1e9:.1f}",
         f"{shares[name]:.2f}"]
        for name, times in speedups.items()
    ]  # fmt: skip
    settings = found["settings"]
    text = (
        f"**{settings['maps']} maps**, |M| = {settings['memory']}, {settings['targets']} targets, K = "
        f"{settings['samples']}: {1 / ours:.2f} updates per second, **{found['fraction_of_sgemm']:.2f}** of the "
        f"matrix product's {rate / 1e9:.0f} GFLOP/s; {found['unique_pairs']} different pairs and "
        f"{found['unique_items']} items among {found['reads']} reads."
    )
    head = ("one update", "time", "slower than vma", "GFLOP", "share of the matrix product's rate")
    return f"{wrapped(text)}\n\n{markdown(head, rows)}"


def evaluate(found: Result) -> str:
    """The K-sample bound beside the textbook loops."""
    rows = [
        [str(row["memory"]), *(seconds(spent) for spent in row["seconds"].values()),
         f"{row['speedup_vs_textbook']:.2f} × ({least_and_most(row)})",
         f"{row['speedup_vs_textbook_channels_last']:.2f} ×", f"{row['speedup_vs_layers']:.2f} ×",
         f"{row['flops']['textbook'] / row['flops']['vma']:.2f} ×",
         *(size(row["peak_memory_bytes"][side] or 0) for side in ("vma", "textbook")),
         f"{row['unique_pairs']} of {row['reads']}"]
        for row in found["rows"]
    ]  # fmt: skip
    settings = found["settings"]
    sides = found["rows"][0]["seconds"]
    faster = ("faster than the textbook (in a round)", "... with channels_last", "faster than by layers")
    head = (
        "\\|M\\|", *sides, *faster, "fewer operations than the textbook", "peak, vma", "peak, textbook",
        "different pairs",
    )  # fmt: skip
    text = f"K = {settings['samples']}, {settings['targets']} targets, {settings['maps']} maps."
    return f"{wrapped(text)}\n\n{markdown(head, rows)}"


def in_order(found: Result) -> str:
    """What an update costs with pixels that know their neighbours."""
    settings, spent = found["settings"], found["seconds"]
    return wrapped(
        f"`{settings['preset']}`, {settings['maps']} maps: {seconds(spent['vma, in reading order'])} beside "
        f"{seconds(spent['vma'])} with independent pixels, **{found['reading_order_cost']:.2f} times** as long."
    )


def drawing(found: Result) -> str:
    """Images drawn pixel by pixel, beside the naive way."""
    settings = found["settings"]
    rows = [[name, seconds(spent)] for name, spent in found["seconds"].items()]
    text = (
        f"{settings['images']} images of 26 × 26 pixels, {settings['maps']} maps: "
        f"**{found['milliseconds']:.0f} ms**, **{found['speedup_vs_naive']:.0f} times** faster than the whole "
        "network for every pixel."
    )
    return f"{wrapped(text)}\n\n{markdown(('drawing', 'time'), rows)}"


def attention(found: Result) -> str:
    """Hard and soft reads as the memory grows."""
    names = ("vma", "soft, pixels", "soft, features")
    rows = [
        [str(row["memory"]), *(seconds(row["seconds"][n]) for n in names),
         *(f"{row['flops'][n] / 1e9:.1f}" for n in names)]
        for row in found["rows"]
    ]  # fmt: skip
    head = ("\\|M\\|", *names, *(f"{name}, GFLOP" for name in names))
    lines = [crossing(kind, found[f"crossing_{kind}"]) for kind in ("pixels", "features")]
    lines += [growth(name, costs) for name, costs in found["growth"].items()]
    settings = found["settings"]
    text = f"Seconds of one update, {settings['maps']} maps, {settings['targets']} targets, VMA with K = 4."
    return f"{wrapped(text)}\n\n{markdown(head, rows)}\n\n" + "\n".join(wrapped(line) for line in lines)


def growth(name: str, costs: dict[str, float]) -> str:
    """What an update of a model costs in any case, and for every item more."""
    flops = f"{costs['fixed_flops'] / 1e9:.1f} GFLOP and {costs['flops_per_item'] / 1e6:.0f} MFLOP"
    times = f"{seconds(costs['fixed_seconds'])} and {seconds(costs['seconds_per_item'])}"
    return f"- {name}: {flops} an update and for every item; {times}."


def crossing(kind: str, where: float | None) -> str:
    """Where VMA becomes faster than a kind of soft attention."""
    if where is None:
        return f"- Reading {kind}, soft attention is not slower than VMA up to the largest memory."
    return f"- Reading {kind}, soft attention is slower than VMA from |M| ≈ {where:.0f}."


def addressing(found: Result) -> str:
    """Addressing with cached keys."""
    rows = [
        [f"{row['memory']:,}".replace(",", " "), str(row["targets"]), seconds(row["seconds_per_query"]),
         seconds(row["limit_seconds"]), f"{row['fraction_of_bandwidth']:.2f}", size(row["bytes_per_query"])]
        for row in found["rows"]
    ]  # fmt: skip
    head = (
        "\\|M\\|",
        "queries at a time",
        "time per query",
        "keys read once",
        "share of the limit",
        "memory per query",
    )
    growing = ", ".join(
        f"{value:.2f} for {batch} at a time" for batch, value in found["growth_exponent"].items() if value
    )
    text = f"Keys are read at {size(found['bytes_per_second'])}/s. Time grows as |M| to the power {growing}."
    return f"{markdown(head, rows)}\n\n{wrapped(text)}"


def data(found: Result) -> str:
    """Episodes and glyphs."""
    settings = found["settings"]
    return wrapped(
        f"{found['episodes_per_second']:,.0f} episodes of {settings['targets']} targets and {settings['memory']} "
        f"items a second, as tensors; {found['glyphs_per_second']:,.0f} glyphs drawn a second."
    )


SECTIONS: dict[str, tuple[str, Callable[[Result], str]]] = {
    "bench-step-64": ("One training update", step),
    "bench-step-32": ("", step),
    "bench-evaluate": ("Evaluation", evaluate),
    "bench-step-in-order": ("Ink in reading order: an update", in_order),
    "bench-drawing": ("Ink in reading order: drawing", drawing),
    "bench-attention": ("Hard and soft attention", attention),
    "bench-addressing": ("Addressing alone", addressing),
    "bench-data": ("Data", data),
}


def tables(results: Path) -> str:
    """All sections whose JSON there is."""
    parts = []
    for name, (title, render) in SECTIONS.items():
        file = results / f"{name}.json"
        heading = f"### {title}\n\n" if title else ""
        if file.exists():
            found = json.loads(file.read_text())
            parts.append(f"{heading}{render(found)}\n\n{machine(found)}")
        else:
            parts.append(f"{heading}`results/{name}.json` has not been measured yet.")
    return "\n\n".join(parts)


def filled(page: str, results: Path) -> str:
    """The page with its tables made anew."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{tables(results)}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    write_atomically(PAGE, filled(PAGE.read_text(), RESULTS).encode())
