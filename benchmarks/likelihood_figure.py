"""One example in memory, and what two models make of it: independent pixels, and ink in reading order.

    python -m benchmarks.likelihood_figure results/likelihood-samples.json docs/images/likelihoods.png \
        --bernoulli MODEL --in-order MODEL

draws samples of both models for the same characters of the test classes, keeps them in the JSON, and makes the
figure from it; without models, from the JSON that is there.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from matplotlib.figure import Figure

from vma.data import load_dataset
from vma.data.samplers import EpisodeSampler
from vma.evaluation.json_values import pack, plain
from vma.files import write_atomically
from vma.memory import Memory
from vma.model import VMA
from vma.plotting.embedding import unpack
from vma.plotting.grids import grid_figure
from vma.plotting.style import BLUE, GREY, INK, TEAL, png
from vma.storage import load_model

ROWS, SAMPLES, REAL = 8, 6, 3
TITLES = ("in M", "real drawings", "independent pixels (the paper's)", "ink in reading order")


@dataclass(frozen=True)
class Options:
    """What is drawn.

    Attributes:
        path: The JSON.
        figure: The picture.
        bernoulli: A model with the likelihood `bernoulli`.
        in_order: A model with the likelihood `reading-order`.
        data: Folder with the data files.
        seed: Decides characters and samples.
    """

    path: Annotated[Path, tyro.conf.Positional]
    figure: Annotated[Path, tyro.conf.Positional]
    bernoulli: Path | None = None
    in_order: Path | None = None
    data: Path | None = None
    seed: int = 0


@torch.no_grad()
def answer(bernoulli: Path, in_order: Path, options: Options) -> dict[str, Any]:
    """One item of each character alone in memory, samples of both models, and other drawings of it."""
    data = load_dataset("omniglot", "test", data=options.data)
    episode = (
        EpisodeSampler(data, classes=ROWS, targets=REAL, shots=1, seed=options.seed).episode(0).tensors()
    )
    found: dict[str, Any] = {
        "items": plain(pack(episode.memory.unsqueeze(1))),
        "real": plain(pack(episode.targets.unflatten(0, (ROWS, REAL)))),
        "data": f"{data.name} {data.split}, one item alone in memory",
        "seed": options.seed,
    }
    for name, path in (("bernoulli", bernoulli), ("in_order", in_order)):
        model = load_model(path)
        assert isinstance(model, VMA)
        rows = [
            model.sample(
                Memory(item[None]), SAMPLES, generator=torch.Generator().manual_seed(options.seed + i)
            )
            for i, item in enumerate(episode.memory)
        ]
        found[name] = plain(pack(torch.stack([row.shown for row in rows])))
        found[f"{name}_model"] = {"file": path.name, "config": asdict(model.config)}
    return found


def draw(found: dict[str, Any]) -> Figure:
    """Columns: the item, real drawings, samples of either model."""
    groups: list[np.ndarray] = [unpack(found[name]) for name in ("items", "real", "bernoulli", "in_order")]
    return grid_figure(groups, TITLES, [TEAL, GREY, INK, BLUE])


def main(options: Options) -> None:
    """Draw the samples if there are models, and the figure."""
    torch.set_num_threads(1)
    if options.bernoulli and options.in_order:
        found = answer(options.bernoulli, options.in_order, options)
        write_atomically(options.path, json.dumps(found).encode())
    write_atomically(options.figure, png(draw(json.loads(options.path.read_text()))))


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
