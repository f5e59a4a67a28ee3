"""How much ink is left in one drawing that stands for all of p(x|m,z), where pixels know those before them.

    python -m benchmarks.typical_drawings results/typical-drawings.json --data DATA

draws unseen Omniglot characters from themselves as the only item, at the mean of p(z|m), as `vary` does, and of
q(z|m,x), as `explain` does: every pixel at its more probable value, a draw at random, and the typical drawing.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from jaxtyping import Float
from torch import Tensor

import vma
from vma.data import load_dataset
from vma.evaluation.statistics import wilson
from vma.files import write_atomically
from vma.latents import DiagonalGaussian
from vma.likelihoods import Likelihood

MODEL = "omniglot-crisp"
Images = Float[Tensor, "images height width"]


@dataclass(frozen=True)
class Options:
    """The characters.

    Attributes:
        path: The JSON.
        data: Folder with the files of Omniglot.
        images: Drawings of test classes, drawn at random.
        seed: Decides which, and the draws.
    """

    path: Annotated[Path, tyro.conf.Positional]
    data: Path | None = None
    images: int = 1000
    seed: int = 0


def characters(options: Options) -> Images:
    """Unseen drawings, in black and white."""
    dataset = load_dataset("omniglot", "test", data=options.data)
    rows = np.random.default_rng(options.seed).choice(len(dataset.images), options.images, replace=False)
    return (torch.from_numpy(dataset.images[rows]) > 127).float()


def ways(likelihood: Likelihood, seed: int) -> dict[str, Callable[[Tensor], Images]]:
    """From features to images."""
    generator = torch.Generator().manual_seed(seed)

    def at_random(features: Tensor) -> Images:
        uniforms = torch.rand((len(features), *features.shape[2:]), generator=generator)
        return likelihood.draw(features, uniforms).images

    def most_probable(features: Tensor) -> Images:
        return likelihood.draw(features, features.new_full((len(features), *features.shape[2:]), 0.5)).images

    return {
        "every pixel's more probable value": most_probable, "at random": at_random,
        "typical": lambda features: likelihood.typical(features).images,
    }  # fmt: skip


@torch.no_grad()
def decoded(model: vma.VMA, x: Images) -> dict[str, Tensor]:
    """Features of each drawing as its own item, at the means of p(z|m) and of q(z|m,x)."""
    items = model.networks.items(x)
    posterior = model.networks.encode(model.networks.targets(x), model.networks.item_half(x))
    means = {"p(z|m)": items.prior, "q(z|m,x)": posterior}
    return {
        name: model.networks.decode(DiagonalGaussian.of_statistics(each).mean, items.decoder)
        for name, each in means.items()
    }


def compared(drawn: Images, x: Images) -> dict[str, Any]:
    """How often nothing is drawn, or less than half of the ink of the item; and the mean of the shares."""
    share = drawn.sum((1, 2)) / x.sum((1, 2))
    blank, little = (asdict(wilson(int(each.sum()), len(x))) for each in (share == 0, share < 0.5))
    return {"blank": blank, "less than half": little, "share": float(share.mean())}


@torch.no_grad()
def main(options: Options) -> None:
    """Draw, compare, write."""
    torch.set_num_threads(1)
    x, trained = characters(options), vma.load(MODEL)
    model, found = trained.model, {}
    for at, features in decoded(model, x).items():
        for name, way in ways(model.likelihood, options.seed).items():
            start = time.process_time()
            drawn = torch.cat([way(part) for part in features.split(50)])
            seconds = time.process_time() - start
            found[f"{at}, {name}"] = compared(drawn, x) | {"cpu_seconds_an_image": seconds / len(x)}
    about = {"command": f"python -m benchmarks.typical_drawings {options.path}", "images": options.images,
             "seed": options.seed, "model": MODEL, "weights": trained.fingerprint[:16],
             "data": "omniglot 45-5/test"}  # fmt: skip
    write_atomically(options.path, json.dumps(about | {"drawn": found}, indent=1).encode())


if __name__ == "__main__":
    main(tyro.cli(Options, description=__doc__))
