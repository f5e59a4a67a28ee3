"""Episodes of Table 1: the same targets in every cell, beside memories that nest in the number of shots."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.data.dataset import Dataset
from vma.data.randomness import stream
from vma.errors import InputError
from vma.evaluation.likelihood import measures
from vma.evaluation.resumable import Evaluation, Row
from vma.evaluation.statistics import mean_of
from vma.evaluation.trained_run import TrainedRun
from vma.memory import Memory

TABLE = 31  # purpose of the random stream
TARGETS = 10  # of a part of the work


@dataclass(frozen=True)
class TableOptions:
    """−log p(x|M) for every number of classes and shots, in both protocols and both meanings of shots.

    Attributes:
        classes: Numbers of classes in memory, C.
        shots: Numbers of shots, t.
        targets: Targets of each cell, each with a memory of its own.
        samples: K.
        seed: Decides targets, items and samples.
    """

    classes: tuple[int, ...] = (1, 2, 4)
    shots: tuple[int, ...] = (1, 2, 3, 4, 5, 10, 19)
    targets: int = 100
    samples: int = 1000
    seed: int = 0


@dataclass(frozen=True)
class Cell:
    """A cell: `disjoint` or `with-replacement`, t images `per-class` or in `total`, C classes, t."""

    protocol: Literal["disjoint", "with-replacement"]
    counts: Literal["per-class", "total"]
    classes: int
    shots: int


def cells_of(options: TableOptions) -> list[Cell]:
    """All cells; with one class both meanings of shots are the same, and are asked once."""
    protocols: Sequence[Literal["disjoint", "with-replacement"]] = ("disjoint", "with-replacement")
    meanings: Sequence[Literal["per-class", "total"]] = ("per-class", "total")
    return [
        Cell(protocol, counts, classes, shots)
        for protocol in protocols
        for counts in meanings
        for classes in options.classes
        for shots in options.shots
        if classes > 1 or counts == "per-class"
    ]


class Targets:
    """Targets with the memories that a cell gives them.

    Args:
        dataset: Images with labels.
        seed: Another seed gives other targets and items.
    """

    def __init__(self, dataset: Dataset, seed: int = 0) -> None:
        labels = dataset.class_labels()
        self.dataset, self.seed = dataset, seed
        self.images = int(dataset.class_counts().min())
        self.by_class = [np.flatnonzero(labels == c) for c in range(len(dataset.classes))]

    def draw(self, number: int, cell: Cell) -> tuple[Float[Tensor, "1 *image"], Memory]:
        """Target `number`, the same whatever the cell, and its memory; fewer shots are the first ones."""
        if cell.shots >= self.images or cell.classes > len(self.by_class):
            raise InputError(
                f"{cell.classes} classes × {cell.shots} shots are more than {self.dataset.name} has."
            )
        source = stream(self.seed, number, TABLE)
        classes = source.permutation(len(self.by_class))[: cell.classes]
        chances = source.random((2 + len(self.by_class), self.images))
        target = int(chances[0, 0] * self.images)
        orders = [
            self.order(row, cell, target if i == 0 else -1)
            for i, row in enumerate(chances[2:][: cell.classes])
        ]
        wanted = self.wanted(chances[1], cell)
        items = np.concatenate(
            [self.by_class[c][o[:n]] for c, o, n in zip(classes, orders, wanted, strict=True)]
        )
        x = self.by_class[classes[0]][target : target + 1]
        return self.pixels(x), Memory(
            self.pixels(items), torch.arange(cell.classes).repeat_interleave(torch.tensor(wanted))
        )

    def order(self, chances: Float[np.ndarray, "n"], cell: Cell, target: int) -> Int[np.ndarray, "_"]:
        """Positions of a class's items: all but the target in random order, or each drawn by itself."""
        if cell.protocol == "with-replacement":
            return (chances * self.images).astype(np.int64)
        shuffled = chances.argsort(kind="stable")
        return shuffled[shuffled != target]

    def wanted(self, chances: Float[np.ndarray, "n"], cell: Cell) -> list[int]:
        """How many items each class has in memory."""
        if cell.counts == "per-class":
            return [cell.shots] * cell.classes
        drawn = (chances[: cell.shots] * cell.classes).astype(np.int64)
        return np.bincount(drawn, minlength=cell.classes).tolist()

    def pixels(self, indices: Int[np.ndarray, "n"]) -> Float[Tensor, "n *image"]:
        """The images, in [0, 1]."""
        return torch.from_numpy(self.dataset.images[indices]).float().div_(255)


def table(trained: TrainedRun, options: TableOptions) -> Evaluation:
    """The evaluation that `options` ask for."""
    cells, targets = cells_of(options), Targets(trained.dataset, options.seed)
    blocks = -(-options.targets // TARGETS)

    def part(number: int) -> Row:
        cell, start = cells[number // blocks], number % blocks * TARGETS
        source = trained.generator(options.seed, number)
        values = []
        for target in range(start, min(start + TARGETS, options.targets)):
            x, memory = targets.draw(target, cell)
            like = torch.zeros((), device=trained.device)
            found = measures(trained.model, x.to(like), memory.to(like), options.samples, generator=source)
            values += found["nll"]
        return {**asdict(cell), "nll": values}

    about = {**trained.about, **asdict(options), "protocol": "both, see each cell"}
    return Evaluation("table", about, blocks * len(cells), part, summary)


def summary(rows: list[Row]) -> dict[str, Any]:
    """The mean NLL of every cell, with its standard error."""
    names = ("protocol", "counts", "classes", "shots")
    keys = list(dict.fromkeys(tuple(row[name] for name in names) for row in rows))
    cells = []
    for key in keys:
        values = [v for row in rows if tuple(row[name] for name in names) == key for v in row["nll"]]
        cells.append({**dict(zip(names, key, strict=True)), "nll": asdict(mean_of(values))})
    return {"number_of_targets": len(values), "cells": cells}
