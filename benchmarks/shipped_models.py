"""How good the models in the box are: measured with the weights that are shipped, written onto their cards.

python -m benchmarks.shipped_models --data DATA                   # all models: answers, cards, docs/models.md
python -m benchmarks.shipped_models --data DATA --only omniglot   # one of them
python -m benchmarks.shipped_models --page                        # docs/models.md alone, from the cards
"""

import json
import textwrap
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
import tyro

from vma.data import load_dataset
from vma.evaluation import (
    Answer,
    ClassifyOptions,
    NllOptions,
    NoveltyOptions,
    TrainedRun,
    answer,
    classify,
    nll,
    novelty,
)
from vma.evaluation.resumable import Evaluation
from vma.evaluation.trained_run import About, ModelDescription, describe_data
from vma.files import write_atomically
from vma.pretrained import DEFAULT, FOLDER, Card, Measured, card_of, pretrained_names, weights_of
from vma.runs.processes import processes
from vma.storage import load_model
from vma.training.api import find_preset, with_changes

ROOT = Path(__file__).parents[1]
ANSWERS, PAGE = ROOT / "results/shipped", ROOT / "docs/models.md"
HEAD = """# Models in the box

Two trained models come with the package, in half precision, 2 MB each. `vma models` lists them,
`vma models NAME` shows a card, and a name stands for the model wherever a run or a file does:

    vma serve omniglot-crisp
    vma recognise new.png --memory my-symbols            # {default}, the default
    vma imagine omniglot --memory my-symbols --out imagined.png

In Python it is `vma.load("{default}")`. A folder of the same name is written `./omniglot`. The
numbers below were measured with these very weights, on alphabets that no training saw, by
`python -m benchmarks.shipped_models --data DATA`.
"""


@dataclass(frozen=True)
class Options:
    """What is measured.

    Attributes:
        data: Folder with the files of Omniglot.
        only: Names of the models; all of them where none is given.
        page: Write the page alone, from the cards as they are.
    """

    data: Path | None = None
    only: tuple[str, ...] = ()
    page: bool = False


def opened(card: Card, data: Path | None) -> TrainedRun:
    """A model in the box with the test classes of its data."""
    settings = with_changes(find_preset(card.preset), card.overrides)
    dataset = load_dataset("omniglot", "test", data=data)
    model = ModelDescription(
        run=card.name, preset=card.preset, kind="vma", maps=settings.model.maps, updates=card.updates,
        sleep_updates=card.sleep_updates, hours=card.hours, seed=card.seed, weights=card.sha256[:16],
        overrides=card.overrides,
    )  # fmt: skip
    about = About(model, describe_data(dataset, "test"))
    return TrainedRun(load_model(weights_of(card.name)).float().eval(), dataset, settings, about)


def asked(trained: TrainedRun, name: str) -> dict[str, Answer]:
    """The answers of a model, each in a file that has its name."""
    evaluations: dict[str, Evaluation] = {
        "classify": classify(trained, ClassifyOptions(trials=2000)),
        "nll": nll(trained, NllOptions(episodes=16, classes=8, targets=4, shots=4, samples=1000)),
        "novelty": novelty(trained, NoveltyOptions(episodes=24)),
    }
    found = {}
    with processes("cpu") as here:
        for kind, evaluation in evaluations.items():
            command = f"python -m benchmarks.shipped_models --only {name}"
            found[kind] = answer(evaluation, ANSWERS / f"{name}-{kind}", here, command=command)
            print(f"{name}: {found[kind].file}", flush=True)
    return found


def numbers(found: dict[str, Answer]) -> list[Measured]:
    """What the answers say, for a card."""
    files = {kind: str(Path(each.file).relative_to(ROOT)) for kind, each in found.items()}
    mean, area = found["nll"].results.nll, found["novelty"].results.areas["joined"]
    rows = [
        Measured(
            f"NLL of 512 drawings, 8 classes × 4 in memory, K = {found['nll'].about['samples']}",
            mean.value,
            mean.error,
            unit="nats",
            answer=files["nll"],
        )
    ]
    for task in found["classify"].results.tasks:
        share = task.by_address
        rows.append(
            Measured(
                f"{task.ways}-way {task.shots}-shot by q(a|x), {share.trials} trials",
                share.value,
                low=share.low,
                high=share.high,
                unit="%",
                answer=files["classify"],
            )
        )
    what = "new told from known, 8 classes × 4 in memory (area)"
    return [*rows, Measured(what, area.value, area.error, answer=files["novelty"])]


def page() -> str:
    """docs/models.md: the cards of all models."""
    return "\n".join([HEAD.format(default=DEFAULT), *map(section, map(card_of, pretrained_names()))])


def section(card: Card) -> str:
    """A card as a section of the page."""
    facts = {
        "good for": card.good_for, "not good for": card.bad_for, "trained on": card.data, "licence": card.licence,
        "trained with": f"`{card.command}`; {card.updates} updates and {card.sleep_updates} asleep, "
        f"{card.hours:.1f} hours of one core, seed {card.seed}",
        "sha256": f"`{card.sha256}`",
    }  # fmt: skip
    measured = [
        f"| {each.what.replace('|', chr(92) + '|')} | [{each}](../{each.answer}) |" for each in card.numbers
    ]
    table = "\n".join(["| what | measured |", "|---|---|", *measured])
    listed = "\n".join(wrapped(f"- **{name}**: {text}") for name, text in facts.items())
    return f"## `{card.name}`\n{wrapped(card.summary.capitalize() + '.')}\n\n{table}\n\n{listed}\n"


def wrapped(text: str) -> str:
    """A paragraph, or an item of a list, in lines of at most 100 characters."""
    after = "  " if text.startswith("- ") else ""
    return textwrap.fill(text, 100, subsequent_indent=after, break_long_words=False, break_on_hyphens=False)


def main(options: Options) -> None:
    """Measure, and write cards and page."""
    torch.set_num_threads(1)
    for name in () if options.page else options.only or pretrained_names():
        card = card_of(name)
        with torch.no_grad():
            card = replace(card, numbers=numbers(asked(opened(card, options.data), name)))
        text = json.dumps(asdict(card), indent=1, ensure_ascii=False) + "\n"
        write_atomically(FOLDER / f"{name}.json", text.encode())
    write_atomically(PAGE, page().encode())


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
