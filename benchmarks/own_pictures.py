"""How well a model in the box knows characters that were never drawn for it, beside nearest neighbours.

    python -m benchmarks.font_scripts FOLDER
    python -m benchmarks.own_pictures FOLDER results/own-pictures.json

All methods are asked the same questions on the same prepared pictures of the TEST scripts; `before` are the
pictures as they were prepared before they were cropped and thinned.
"""

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import tyro
from scipy import ndimage
from skimage.feature import hog

import vma
from benchmarks.font_scripts import DEVELOPMENT, TEST
from vma.addressing import class_mass
from vma.data.dataset import Dataset
from vma.data.folder import image_paths
from vma.data.picture import DoubtfulPicture, FolderOptions, read_image
from vma.data.samplers import EpisodeSampler
from vma.evaluation.classification import trial_draw
from vma.evaluation.novelty import NoveltyOptions, scored, summary
from vma.evaluation.statistics import wilson
from vma.files import write_atomically

TASKS = ((5, 1), (5, 5), (20, 1), (20, 5))
BEFORE = FolderOptions(upright=False, uneven=False, crop=False, thin=False)
BLUR = 1.0  # pixels, one standard deviation

Score = Callable[[np.ndarray, int], np.ndarray]  # of items, for a target


@dataclass(frozen=True)
class Options:
    """What is measured.

    Attributes:
        folder: Pictures, as `benchmarks.font_scripts` wrote them.
        out: Where the numbers go.
        scripts: `test`, or `development`, on which the steps were chosen.
        kinds: Clean renderings, and the same as if photographed.
        models: In the box.
        trials: Of each task.
        renderings: Of each class, of the 20 that there are.
        within: `all` draws classes from all scripts, `alphabet` from one.
        novelty: Memories in which new classes are told from known ones, by the first model; 0 leaves that out.
        seed: Decides trials and memories.
    """

    folder: tyro.conf.Positional[Path]
    out: tyro.conf.Positional[Path]
    scripts: str = "test"
    kinds: tuple[str, ...] = ("clean", "photo")
    models: tuple[str, ...] = ("omniglot-crisp", "omniglot")
    trials: int = 400
    renderings: int = 20
    within: str = "all"
    novelty: int = 12
    seed: int = 0


def prepared(options: Options, kind: str, how: FolderOptions) -> tuple[Dataset, int]:
    """The pictures of a kind as the model sees them, and how many of them were found doubtful."""
    chosen = TEST if options.scripts == "test" else DEVELOPMENT
    paths = [
        path
        for path in image_paths(options.folder / kind)
        if path.parent.name.split("-")[0] in chosen and int(path.stem) < options.renderings
    ]
    pictures = [read_image(path, (26, 26), how) for path in paths]
    names = [path.parent.name.replace("-", "/") for path in paths]
    classes, labels = np.unique(names, return_inverse=True)
    images = np.stack([each.ink for each in pictures])
    data = Dataset(
        "font-scripts", f"{options.scripts}/{kind}", images, labels, tuple(classes.tolist()), str(how)
    )
    return data, sum(each.doubt is not None for each in pictures)


def nearest(features: np.ndarray) -> Score:
    """Cosines of feature vectors."""
    unit = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-9)
    return lambda items, target: unit[items] @ unit[target]


def blurred(images: np.ndarray) -> Score:
    """Cosines of images after a Gaussian blur."""
    return nearest(np.stack([ndimage.gaussian_filter(each / 255, BLUR).ravel() for each in images]))


def gradients(images: np.ndarray) -> Score:
    """Cosines of histograms of oriented gradients."""
    return nearest(
        np.stack([hog(each / 255, pixels_per_cell=(5, 5), cells_per_block=(2, 2)) for each in images])
    )


@torch.no_grad()
def addressed(name: str, images: np.ndarray) -> Score:
    """S(m, x) of the model: q(a|x) before it is normalised."""
    model = vma.load(name).model
    parts = (torch.from_numpy(images).float() / 255).split(200)
    keys = torch.cat([model.remember(part).keys for part in parts])
    queries = torch.cat([model.addressing.queries(part) for part in parts])
    scores = model.addressing.similarity.scores
    return lambda items, target: scores(keys[items], queries[target]).numpy()


def by_mass(scores: np.ndarray, labels: np.ndarray, ways: int) -> int:
    """The class with the largest sum of softmax scores."""
    share = torch.from_numpy(scores).double().softmax(0)[None]
    return int(class_mass(share, torch.from_numpy(labels), ways).argmax())


def by_nearest(scores: np.ndarray, labels: np.ndarray, ways: int) -> int:
    """The class of the nearest item."""
    return int(labels[int(scores.argmax())])


def asked(data: Dataset, methods: dict[str, tuple[Score, Callable]], options: Options) -> dict[str, Any]:
    """Every method's share of right answers in every task."""
    hits = {name: [0] * len(TASKS) for name in methods}
    for place, (ways, shots) in enumerate(TASKS):
        draw = trial_draw(data, ways, shots, options.seed, options.within)
        for step in range(options.trials):
            episode = draw(step)
            target, truth = int(episode.target_indices[0]), int(episode.target_labels[0])
            # A class has another number in each trial, so that who always takes the first is right by chance only.
            labels = (episode.memory_labels + step) % ways
            for name, (score, decide) in methods.items():
                answer = decide(score(episode.memory_indices, target), labels, ways)
                hits[name][place] += answer == (truth + step) % ways
    return {name: [asdict(wilson(each, options.trials)) for each in found] for name, found in hits.items()}


def new_from_known(data: Dataset, options: Options) -> dict[str, Any]:
    """Areas under the curve of what is new, with 8 classes × 4 in memory."""
    how = NoveltyOptions(episodes=options.novelty, seed=options.seed)
    sampler = EpisodeSampler(data, classes=16, targets=how.targets, shots=how.shots, seed=how.seed)
    model = vma.load(options.models[0]).model
    rows = [scored(model, sampler.episode(number).tensors(), how) for number in range(options.novelty)]
    return {"options": asdict(how), "areas": {k: asdict(v) for k, v in summary(rows).areas.items()}}


def measured(options: Options, kind: str) -> dict[str, Any]:
    """All of one kind of pictures."""
    data, doubtful = prepared(options, kind, FolderOptions())
    before, _ = prepared(options, kind, BEFORE)
    methods: dict[str, tuple[Score, Callable]] = {
        **{name: (addressed(name, data.images), by_mass) for name in options.models},
        "blurred nearest neighbour": (blurred(data.images), by_nearest),
        "HOG nearest neighbour": (gradients(data.images), by_nearest),
        f"{options.models[0]}, before": (addressed(options.models[0], before.images), by_mass),
        "blurred nearest neighbour, before": (blurred(before.images), by_nearest),
    }
    found = {
        "classes": len(data.classes), "pictures": len(data), "doubtful": doubtful, "ink": data.images.mean() / 255,
        "right": asked(data, methods, options),
    }  # fmt: skip
    return found | ({"novelty": new_from_known(data, options)} if options.novelty else {})


def table(found: dict[str, Any]) -> str:
    """The share of right answers in each task, as Markdown."""
    rows = [
        "| pictures | by | " + " | ".join(f"{w}-way {s}-shot" for w, s in TASKS) + " |",
        "|---|---|---|---|---|---|",
    ]
    for kind, each in found["kinds"].items():
        for name, shares in each["right"].items():
            cells = [f"{100 * s['value']:.1f} ({100 * s['low']:.1f}–{100 * s['high']:.1f})" for s in shares]
            rows.append(f"| {kind} | {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def main(options: Options) -> None:
    """Measure, and write after each kind of pictures."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", DoubtfulPicture)
    about = asdict(options) | {"folder": options.folder.name, "out": options.out.name}
    scripts: Sequence[str] = TEST if options.scripts == "test" else DEVELOPMENT
    steps = {"default": asdict(FolderOptions()), "before": asdict(BEFORE), "blur": BLUR}
    found: dict[str, Any] = {"options": about, "of": list(scripts), "steps": steps, "kinds": {}}
    for kind in options.kinds:
        found["kinds"][kind] = measured(options, kind)
        write_atomically(options.out, json.dumps(found, indent=1).encode())
        print(f"{kind}: {options.out}", flush=True)
    print(table(found))


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
