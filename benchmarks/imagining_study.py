"""Does imagining help? Small classifiers trained on few real examples of a class, with and without imagined ones.

    python -m benchmarks.imagining_study results/imagining-study.json --data DATA
    python -m benchmarks.font_scripts FOLDER
    python -m benchmarks.imagining_study results/imagining-study-fonts.json --fonts FOLDER

draws 20-way tasks of Omniglot's test classes, which the models in the box have never seen, or of letters of
scripts that Omniglot lacks. In each, one or five real examples of a class are given. Training sets are these
alone, or with 50 more for each class: affine maps of the real ones, images that a model in the box imagines from
them, or imagined ones through affine maps. Both classifiers are tested on the drawings that are left. It goes on
from the JSON that is there, task by task.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from jaxtyping import Float, Int
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

import vma
from benchmarks.own_pictures import Options as Pictures
from benchmarks.own_pictures import prepared
from vma.data import Dataset, FolderOptions, load_dataset
from vma.evaluation.statistics import mean_of
from vma.fewshot.images import Ink
from vma.files import write_atomically
from vma.warps import WarpSettings, warped

WARPS = WarpSettings(
    rotation=0.2, shear=0.2, scale=0.15, aspect=0.1, shift=0.15
)  # those of the -fast presets
MODELS = ("omniglot-crisp", "omniglot")
EXTRAS = ("none", "affine", *MODELS, f"{MODELS[0]}, affine")
CLASSIFIERS = ("logistic", "cnn")


@dataclass(frozen=True)
class Options:
    """The tasks.

    Attributes:
        path: The JSON, which is added to.
        data: Folder with the files of Omniglot.
        fonts: Pictures that `benchmarks.font_scripts` wrote: the clean ones of its scripts for testing are taken
            instead of Omniglot, prepared as `vma recognise` does.
        draws: Number of tasks for each number of shots.
        ways: Classes of a task.
        shots: Real examples of a class.
        extra: Additional examples of a class.
        held: Drawings of each class to test on, at most.
        updates: Of the convolutional network, with 64 images each, whatever the training set.
    """

    path: Annotated[Path, tyro.conf.Positional]
    data: Path | None = None
    fonts: Path | None = None
    draws: int = 20
    ways: int = 20
    shots: tuple[int, ...] = (1, 5)
    extra: int = 50
    held: int = 15
    updates: int = 150


@dataclass(frozen=True)
class Examples:
    """Images and their classes, from 0 on."""

    images: Float[Tensor, "images height width"]
    labels: Int[Tensor, "images"]

    def join(self, other: "Examples") -> "Examples":
        """Both."""
        return Examples(torch.cat((self.images, other.images)), torch.cat((self.labels, other.labels)))


def task_of(dataset: Dataset, options: Options, shots: int, draw: int) -> tuple[Examples, Examples]:
    """Real examples of some classes drawn at random, and other drawings of the same."""
    generator = np.random.default_rng((draw, shots))
    labels = dataset.class_labels()
    classes = generator.permutation(len(dataset.classes))[: options.ways]
    orders = [generator.permutation(np.flatnonzero(labels == c)) for c in classes]
    pick: Callable[[slice], Examples] = lambda part: examples_at(dataset, [order[part] for order in orders])  # noqa: E731
    return pick(slice(shots)), pick(slice(shots, shots + options.held))


def examples_at(dataset: Dataset, rows: list[np.ndarray]) -> Examples:
    """The images of each row, as one class."""
    images = torch.from_numpy(dataset.images[np.concatenate(rows)]).float() / 255
    return Examples(
        images, torch.arange(len(rows)).repeat_interleave(torch.tensor([len(row) for row in rows]))
    )


def remembered(model: vma.fewshot.TrainedModel, real: Examples) -> vma.fewshot.ImageMemory:
    """A memory of the examples as they are."""
    names = tuple(str(label) for label in real.labels.tolist())
    return model.remember(Ink(real.images, names, names, (None,) * len(names)))


def imagined(model: vma.fewshot.TrainedModel, real: Examples, extra: int, seed: int) -> Examples:
    """`extra` images of each class that the model imagines, as they were drawn."""
    drawn = remembered(model, real).imagine_each(extra, seed=seed)
    return Examples(drawn.images, torch.tensor([int(name) for name in drawn.names]))


def moved(examples: Examples, times: int, seed: int) -> Examples:
    """Every image through `times` small affine maps."""
    images, labels = examples.images.repeat_interleave(times, 0), examples.labels.repeat_interleave(times)
    return Examples(warped(images, WARPS, torch.Generator().manual_seed(seed)), labels)


def training_sets(
    models: dict[str, vma.fewshot.TrainedModel], real: Examples, options: Options, shots: int, seed: int
) -> dict[str, Examples]:
    """The real examples, with everything of EXTRAS."""
    more = {name: imagined(model, real, options.extra, seed) for name, model in models.items()}
    both = moved(more[MODELS[0]], 1, seed)
    sets = {"affine": moved(real, options.extra // shots, seed), **more, f"{MODELS[0]}, affine": both}
    return {"none": real} | {name: real.join(each) for name, each in sets.items()}


def logistic(train: Examples, test: Examples, options: Options, seed: int) -> float:
    """Share of right answers of logistic regression on pixels, with scikit-learn's own penalty."""
    fitted = LogisticRegression(tol=1e-3, max_iter=1000).fit(
        train.images.flatten(1).numpy(), train.labels.numpy()
    )
    return float(fitted.score(test.images.flatten(1).numpy(), test.labels.numpy()))


def cnn(train: Examples, test: Examples, options: Options, seed: int) -> float:
    """Share of right answers of two convolutions and a linear layer."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = nn.Sequential(
            nn.Conv2d(1, 16, 5, stride=2, padding=2), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),
            nn.Flatten(), nn.Dropout(0.3), nn.LazyLinear(options.ways),
        )  # fmt: skip
        network(train.images[:1, None])
        optimiser = torch.optim.Adam(network.parameters(), 2e-3)
        for _ in range(options.updates):
            rows = torch.randint(len(train.labels), (64,))
            loss = nn.functional.cross_entropy(network(train.images[rows, None]), train.labels[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.no_grad():
        return float((network.eval()(test.images[:, None]).argmax(1) == test.labels).double().mean())


def by_model(model: vma.fewshot.TrainedModel, real: Examples, test: Examples) -> float:
    """Share of right answers of the model itself, by q(a|x): no classifier is trained."""
    memory = remembered(model, real)
    with torch.no_grad():
        share = memory.model.posterior(test.images, memory.keyed).log_probs.exp()
    mass = share.new_zeros(len(share), int(real.labels.max()) + 1).index_add(1, real.labels, share)
    return float((mass.argmax(1) == test.labels).double().mean())


def one_task(
    models: dict[str, Any], dataset: Dataset, options: Options, shots: int, draw: int
) -> dict[str, Any]:
    """The share of right answers of both classifiers, for every training set of one task."""
    real, test = task_of(dataset, options, shots, draw)
    sets = training_sets(models, real, options, shots, draw)
    right = {
        f"{classifier.__name__}, {name}": classifier(each, test, options, draw)
        for classifier in (logistic, cnn)
        for name, each in sets.items()
    }
    itself = {f"q(a|x), {name}": by_model(model, real, test) for name, model in models.items()}
    return {"shots": shots, "draw": draw, "right": right | itself}


def summary(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over tasks with standard errors, and the gain over real examples alone, task by task."""
    rows = []
    for shots in sorted({task["shots"] for task in tasks}):
        own = [task["right"] for task in tasks if task["shots"] == shots]
        for name in own[0]:
            classifier = name.split(", ")[0]
            base = f"{classifier}, none"
            gains = [each[name] - each[base] for each in own] if base in own[0] else None
            rows.append(
                {"shots": shots, "classifier": classifier, "extra": name.removeprefix(f"{classifier}, "),
                 "draws": len(own), "right": asdict(mean_of([each[name] for each in own])),
                 "gain": None if gains is None else asdict(mean_of(gains))}
            )  # fmt: skip
    return rows


def dataset_of(options: Options) -> Dataset:
    """Omniglot's test classes, or the letters of the fonts."""
    if options.fonts is None:
        return load_dataset("omniglot", "test", data=options.data)
    return prepared(Pictures(options.fonts, options.path), "clean", FolderOptions())[0]


def study(options: Options) -> None:
    """All tasks that are not in the JSON yet."""
    dataset, models = dataset_of(options), {name: vma.load(name) for name in MODELS}
    settings = {k: v for k, v in asdict(options).items() if k not in ("path", "data", "fonts", "draws")}
    about = {"data": f"{dataset.name} {dataset.split}", "hash": dataset.content_hash(), "warps": asdict(WARPS),
             "weights": {name: model.fingerprint[:16] for name, model in models.items()},
             **json.loads(json.dumps(settings))}  # fmt: skip
    fonts = "" if options.fonts is None else " --fonts FOLDER"
    command = f"python -m benchmarks.imagining_study {options.path}{fonts} --draws {options.draws}"
    found = json.loads(options.path.read_text()) if options.path.exists() else {}
    found = found or {"command": f"{command} --updates {options.updates}", "about": about, "tasks": []}
    if found["about"] != about:
        raise vma.InputError(f"{options.path} is of other settings: name another file.")
    done = {(task["shots"], task["draw"]) for task in found["tasks"]}
    for draw in range(options.draws):
        for shots in options.shots:
            if (shots, draw) not in done:
                found["tasks"].append(one_task(models, dataset, options, shots, draw))
                found["results"] = summary(found["tasks"])
                write_atomically(options.path, json.dumps(found, indent=1).encode())


def main(options: Options) -> None:
    """The study, on one thread."""
    torch.set_num_threads(1)
    study(options)


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
