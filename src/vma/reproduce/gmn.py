"""Table 1: VMA beside Generative Matching Networks, in both protocols and both meanings of shots."""

from typing import Any

from vma.plotting.experiments.tables import table_figure
from vma.plotting.style import Figure
from vma.reproduce.experiment import Ask, Experiment, Needed, Scale, ask
from vma.reproduce.rows import Answers, Row, row
from vma.reproduce.table_cells import TableOptions, table

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


def paper_number(kind: str, cell: dict[str, Any]) -> float | None:
    """The paper's number of a cell, if it was measured so: GMN's as its code draws, VMA's as the paper does."""
    protocol, counts = MATCHING[kind]
    alike = cell["protocol"] == protocol and (cell["counts"] == counts or cell["classes"] == 1)
    line = PAPER[kind].get(cell["classes"])
    if not alike or line is None or cell["shots"] not in SHOTS:
        return None
    return line[SHOTS.index(cell["shots"])]


def asks(scale: Scale) -> dict[str, Ask]:
    """All cells for both models; as in the paper, only VMA's with 16 classes."""
    shots, count, samples = scale.choose(SHOTS, (1, 2)), scale.count(200), scale.samples()
    classes = {"gmn": scale.choose((1, 2, 4), (1, 2)), "vma": scale.choose((1, 2, 4, 16), (1, 2))}
    return {key: ask(key, table, TableOptions(each, shots, count, samples)) for key, each in classes.items()}


def rows(answers: Answers) -> list[Row]:
    """Every cell, with its protocol and the meaning of its shots."""
    found = []
    for kind, answer in answers.items():
        for cell in answer["results"]["cells"]:
            number = paper_number(kind, cell)
            how = cell["protocol"] if cell["classes"] == 1 else f"{cell['protocol']}, {cell['counts']}"
            line = f"{NAMES[kind]}, C = {cell['classes']}, {how}"
            column = f"t = {cell['shots']}"
            paper = "not reported so" if number is None else f"{number:.1f}"
            found.append(row(f"NLL, {line}, {column}", paper, cell["nll"], answer, line=line, column=column))
    return found


def draw(answers: Answers) -> Figure:
    """Four tables, with the paper's numbers where they were measured alike."""
    return table_figure(answers, paper_number)


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
    asks=asks,
    rows=rows,
    draw=draw,
)
