"""Table 1: VMA beside Generative Matching Networks, for both protocols and both meanings of shots."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import msgspec
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.data.dataset import Dataset
from vma.data.randomness import stream
from vma.errors import InputError
from vma.evaluation.answers import PlainAnswers
from vma.evaluation.json_values import plain
from vma.evaluation.likelihood import measures
from vma.evaluation.resumable import Evaluation, TargetResults
from vma.evaluation.statistics import Mean, mean_of
from vma.evaluation.trained_run import TrainedRun
from vma.memory import Memory
from vma.plotting.experiments.tables import table_figure
from vma.plotting.style import Figure
from vma.reproduce.experiment import Experiment, Needed, PlannedEvaluation, Scale, planned
from vma.reproduce.findings import Answers, Finding, finding

TABLE = 31  # purpose of the random stream
TARGETS = 10  # in one part of the work
SHOTS = (1, 2, 3, 4, 5, 10, 19)
PAPER = {
    "gmn": {
        1: (83.3, 78.9, 75.7, 72.9, 70.1, 59.9, 45.8),
        2: (86.4, 84.9, 82.4, 81.0, 78.8, 71.4, 61.2),
        4: (88.3, 87.3, 86.7, 85.4, 84.0, 80.2, 73.7),
    },
    "vma": {
        1: (86.5, 83.0, 79.6, 79.0, 76.5, 76.2, 73.9),
        2: (87.2, 83.3, 80.9, 79.3, 79.1, 77.0, 75.0),
        4: (87.5, 83.3, 81.2, 80.7, 79.5, 78.6, 76.7),
        16: (89.6, 85.1, 81.5, 81.9, 81.3, 79.8, 77.0),
    },
}
MATCHING = {"gmn": ("with-replacement", "total"), "vma": ("disjoint", "per-class")}
NAMES = {"gmn": "GMN", "vma": "VMA"}


# The same targets in every cell, beside memories that nest in the number of shots


@dataclass(frozen=True)
class TableOptions:
    """−log p(x|M) for every number of classes and shots, in both protocols and both meanings of shots.

    Attributes:
        classes: Numbers of classes in memory, C.
        shots: Numbers of shots, t.
        targets: Targets of each cell, each with its own memory.
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
    """One cell: protocol `disjoint` or `with-replacement`, t images `per-class` or in `total`, C classes, t."""

    protocol: Literal["disjoint", "with-replacement"]
    counts: Literal["per-class", "total"]
    classes: int
    shots: int


@dataclass(frozen=True)
class Table1Row(Cell):
    """−log p(x|M) of some targets in one cell."""

    nll: list[float]

    @property
    def cell(self) -> Cell:
        """The cell that they belong to."""
        return Cell(self.protocol, self.counts, self.classes, self.shots)


@dataclass(frozen=True)
class Table1Cell(Cell):
    """A cell with its mean −log p(x|M)."""

    nll: Mean


@dataclass(frozen=True, kw_only=True)
class Table1Results(TargetResults):
    """All cells; the number of targets is that of a single cell."""

    cells: list[Table1Cell]


def cells_of(options: TableOptions) -> list[Cell]:
    """All cells; with one class both meanings of shots agree, and are measured once."""
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
        """Target `number`, which is the same in every cell, and its memory; fewer shots are the first of more."""
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
        """Positions of a class's items: all but the target in random order, or each drawn independently."""
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


def table(trained: TrainedRun, options: TableOptions) -> Evaluation[Table1Row, Table1Results]:
    """The evaluation that `options` ask for."""
    cells, targets = cells_of(options), Targets(trained.dataset, options.seed)
    blocks = -(-options.targets // TARGETS)

    def part(number: int) -> Table1Row:
        cell, start = cells[number // blocks], number % blocks * TARGETS
        source = trained.generator(options.seed, number)
        values = []
        for target in range(start, min(start + TARGETS, options.targets)):
            x, memory = targets.draw(target, cell)
            like = torch.zeros((), device=trained.device)
            found = measures(trained.model, x.to(like), memory.to(like), options.samples, generator=source)
            values += found.nll
        return Table1Row(**asdict(cell), nll=values)

    about = {**plain(trained.about), **asdict(options), "protocol": "both, see each cell"}
    return Evaluation("table", about, blocks * len(cells), part, Table1Row, summary)


def summary(rows: list[Table1Row]) -> Table1Results:
    """The mean NLL of every cell, with its standard error."""
    cells = []
    for cell in dict.fromkeys(row.cell for row in rows):
        values = [value for row in rows if row.cell == cell for value in row.nll]
        cells.append(Table1Cell(**asdict(cell), nll=mean_of(values)))
    return Table1Results(number_of_targets=len(values), cells=cells)


# Beside the paper's numbers


def paper_number(kind: str, cell: Cell) -> float | None:
    """The paper's number for a cell, if it was measured alike: GMN drawn as in its code, VMA as in the paper."""
    protocol, counts = MATCHING[kind]
    alike = cell.protocol == protocol and (cell.counts == counts or cell.classes == 1)
    line = PAPER[kind].get(cell.classes)
    if not alike or line is None or cell.shots not in SHOTS:
        return None
    return line[SHOTS.index(cell.shots)]


def plan(scale: Scale) -> dict[str, PlannedEvaluation]:
    """All cells for both models; 16 classes only for VMA, as in the paper."""
    shots, count, samples = scale.choose(SHOTS, (1, 2)), scale.count(200), scale.samples()
    classes = {"gmn": scale.choose((1, 2, 4), (1, 2)), "vma": scale.choose((1, 2, 4, 16), (1, 2))}
    return {
        key: planned(key, table, TableOptions(each, shots, count, samples)) for key, each in classes.items()
    }


def findings(answers: Answers) -> list[Finding]:
    """Every cell, with its protocol and the meaning of its shots."""
    found = []
    for kind, answer in answers.items():
        for cell in answer.results.cells:
            number = paper_number(kind, cell)
            how = cell.protocol if cell.classes == 1 else f"{cell.protocol}, {cell.counts}"
            line, column = f"{NAMES[kind]}, C = {cell.classes}, {how}", f"t = {cell.shots}"
            paper = "not reported so" if number is None else f"{number:.1f}"
            found.append(finding(f"NLL, {line}, {column}", paper, cell.nll, answer, line=line, column=column))
    return found


def draw(answers: PlainAnswers) -> Figure:
    """Four tables, with the paper's numbers if they were measured alike."""
    return table_figure(answers, lambda kind, cell: paper_number(kind, msgspec.convert(cell, Cell)))


TABLE1 = Experiment(
    name="table1-gmn",
    title="Table 1: VMA and Generative Matching Networks",
    paper="NLL (K = 1000) on GMN's split with C classes and t images in memory. GMN is ahead with many "
    "images of one class, from 83.3 at t = 1 to 45.8 at t = 19 (VMA: 86.5 to 73.9), and degrades "
    "as classes are added.",
    caption="Ours ± standard error, and in grey the paper's where it was measured alike. GMN's public "
    "code draws the target from the same images as the memory, so it may be in it, and t is the "
    "number of images in all; VMA's rows are for t images of each class, the target never among "
    "them. Targets are the same in every cell.",
    needs={"gmn": Needed("gmn-gmn"), "vma": Needed("gmn-vma")},
    plan=plan,
    findings=findings,
    draw=draw,
)
