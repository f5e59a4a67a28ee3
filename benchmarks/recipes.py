"""How fast a model learns: the paper's set-up and modern alternatives, alone and together, at equal time.

    python -m benchmarks.recipes results/recipes.json [--seconds 120] [--maps 16] [--seeds 0 1 2] [--only NAME ...]

Each recipe trains on Omniglot's training classes for the same number of seconds of one thread, by the processor's
own clock, so that a busy machine does not count; its schedule follows that clock. What is compared is the NLL
(K = 4) on held-out *training* classes, the same episodes for all recipes of a seed, at each sixth of the time; that
of looking is not counted. Results are added as they come: a call that is cut goes on where it stopped. Two calls,
with `--part 0 --parts 2` and `--part 1 --parts 2` and a file each, share the work; `--join` adds another's file.
"""

import json
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro

from benchmarks.speed.measuring import using_threads
from vma.files import write_atomically
from vma.runs.folder import Run
from vma.runs.presets import PRESETS
from vma.runs.processes import Processes
from vma.runs.settings import TrainSettings
from vma.training.episodes import open_episodes
from vma.training.loop import Trainer
from vma.training.view import SilentView

DATA = "omniglot 45-5, held-out training classes, K = 4"
LOOKS = 6
SCHEDULE = {"warmup": 50, "schedule": "cosine", "average": 0.99, "beta2": 0.99}


def recipe(
    style: str, optimiser: str, gradient: str, samples: int = 4, estimator: str = "vimco"
) -> TrainSettings:
    """`omniglot-fewshot-4` with another style, optimiser, gradient of z, K or estimator, and a schedule."""
    base = PRESETS["omniglot-fewshot-4"]
    rates = {"adam": 1e-3, "muon": 2e-3, "muon-kernels": 2e-3}
    return replace(
        base,
        model=replace(base.model, style=style),
        optimiser=replace(base.optimiser, name=optimiser, rate=rates[optimiser], **SCHEDULE),
        latent_gradient=gradient, samples=samples, estimator=estimator,
    )  # fmt: skip


RECIPES = {
    "paper": PRESETS["omniglot-fewshot-4"],
    "+ rate 1e-3, warm-up, decay, average": recipe("paper", "adam", "pathwise"),
    "... + modern layers": recipe("modern", "adam", "pathwise"),
    "... + Muon": recipe("paper", "muon", "pathwise"),
    "... + Muon on kernels": recipe("paper", "muon-kernels", "pathwise"),
    "... + DReG": recipe("paper", "adam", "dreg"),
    "... + Muon on kernels + DReG": recipe("paper", "muon-kernels", "dreg"),
    "... + modern + Muon + DReG": recipe("modern", "muon", "dreg"),
    "... + modern + Muon on kernels + DReG": recipe("modern", "muon-kernels", "dreg"),
    "Muon on kernels + DReG, K = 2": recipe("paper", "muon-kernels", "dreg", samples=2),
    "Muon on kernels + DReG, K = 8": recipe("paper", "muon-kernels", "dreg", samples=8),
    "Muon on kernels + DReG, wake-sleep": recipe("paper", "muon-kernels", "dreg", estimator="rws"),
    "Muon on kernels + DReG, distinct reads": recipe(
        "paper", "muon-kernels", "dreg", estimator="without-replacement"
    ),
    "... + modern + Muon + DReG, REINFORCE": recipe("modern", "muon", "dreg", estimator="reinforce"),
}


@dataclass(frozen=True)
class Options:
    """What is compared.

    Attributes:
        path: The JSON.
        seconds: Of the processor, for each run.
        maps: Of every convolution.
        seeds: Of the runs.
        data: Folder with the data files.
        part: Which of the parts to do.
        parts: Into how many parts the runs are dealt out.
        join: Files of other parts, to be added.
        only: Recipes to run; all if none is named.
    """

    path: Annotated[Path, tyro.conf.Positional]
    seconds: float = 120.0
    maps: int = 16
    seeds: tuple[int, ...] = (0, 1, 2)
    data: Path | None = None
    part: int = 0
    parts: int = 1
    join: tuple[Path, ...] = ()
    only: tuple[str, ...] = ()


def run(name: str, seed: int, options: Options) -> dict[str, object]:
    """Train one recipe with one seed, and look at held-out training classes."""
    settings = RECIPES[name]
    settings = replace(
        settings, seed=seed, minutes=options.seconds / 60, updates=10**9,
        model=replace(settings.model, maps=options.maps),
    )  # fmt: skip
    streams, here = open_episodes(settings, options.data), Processes(0, 1, torch.device("cpu"))
    one = Trainer(settings, Run(Path("unused")), streams, here, SilentView())
    looks, curve = [options.seconds * (i + 1) / LOOKS for i in range(LOOKS)], []
    while looks:
        began = time.process_time()
        one.step()
        one.seconds += time.process_time() - began
        if one.seconds >= looks[0]:
            one.settings = replace(settings, samples=4)
            curve.append(
                {"seconds": looks.pop(0), "updates": one.update, "valid_nll": one.validate()["valid_nll"]}
            )
            one.settings = settings
    row = one.phase.window.row(one.update)
    return {
        "recipe": name, "seed": seed, "updates": one.update, "seconds": options.seconds, "maps": options.maps,
        "valid_nll": curve[-1]["valid_nll"], "kl_a": row["kl_a"], "kl_z": row["kl_z"], "curve": curve,
    }  # fmt: skip


def summary(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """For each recipe the mean over seeds, and the gain over the first recipe, paired by seed."""
    names = [name for name in RECIPES if any(row["recipe"] == name for row in rows)]
    first = {row["seed"]: float(str(row["valid_nll"])) for row in rows if row["recipe"] == names[0]}
    found = []
    for name in names:
        mine = [row for row in rows if row["recipe"] == name and row["seed"] in first]
        if mine:
            values = torch.tensor([float(str(row["valid_nll"])) for row in mine])
            gains = torch.tensor([first[row["seed"]] - float(str(row["valid_nll"])) for row in mine])
            error = float(gains.std()) / math.sqrt(len(mine)) if len(mine) > 1 else math.nan
            updates = sum(int(str(row["updates"])) for row in mine) // len(mine)
            found.append({
                "recipe": name, "seeds": len(mine), "updates": updates, "valid_nll": float(values.mean()),
                "gain": float(gains.mean()), "gain_error": error,
            })  # fmt: skip
    return found


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Lines of a table: for each recipe its updates, the NLL as time passes, and the gain over the first."""
    lines = []
    for found in summary(rows):
        mine = [row["curve"] for row in rows if row["recipe"] == found["recipe"]]
        curve = [
            f"{sum(look['valid_nll'] for look in looks) / len(mine):.1f}" for looks in zip(*mine, strict=True)
        ]
        gain = f"{found['gain']:.1f} ± {found['gain_error']:.1f}".replace("-", "−")
        lines.append(f"| {found['recipe']} | {found['updates']} | {' | '.join(curve)} | {gain} |")
    return lines


def rows_of(path: Path) -> list[dict[str, object]]:
    """The runs in a file; none if there is no file yet."""
    return json.loads(path.read_text())["rows"] if path.exists() else []


def write(path: Path, rows: list[dict[str, object]]) -> None:
    """The file of `rows`."""
    record = {"data": DATA, "rows": rows, "summary": summary(rows)}
    write_atomically(path, json.dumps(record, indent=1).encode())


def main(options: Options) -> None:
    """All recipes with all seeds, seed by seed."""
    files = (options.path, *options.join)
    done = {(row["recipe"], row["seed"]): row for path in files for row in rows_of(path)}
    rows = list(done.values())
    wanted = [(name, seed) for seed in options.seeds for name in options.only or RECIPES]
    for name, seed in wanted[options.part :: options.parts]:
        if (name, seed) not in done:
            with using_threads(1):
                rows.append(run(name, seed, options))
            write(options.path, rows)
            print({key: rows[-1][key] for key in ("recipe", "seed", "updates", "valid_nll")}, flush=True)
    write(options.path, rows)
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main(tyro.cli(Options))
