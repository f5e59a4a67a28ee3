"""The page as plain files, whose networks run in the browser: `vma serve --static FOLDER`.

ONNX Runtime Web comes with the package, so that nothing is fetched: 2.3 MB, its program packed by xz to a sixth.
"""

import lzma
from pathlib import Path
from typing import Any

import msgspec
import torch
from jaxtyping import Float
from torch import Tensor

from vma.errors import InputError
from vma.export import write_onnx
from vma.export.onnx_folder import MANIFEST
from vma.fewshot import TrainedModel
from vma.fewshot.images import options_for
from vma.files import write_atomically
from vma.likelihoods import ReadingOrder
from vma.likelihoods.reading_order import uniforms_of
from vma.serve.answers import DRAWS, SAMPLES, SEED, pixels
from vma.serve.app import EXAMPLES, PAGE
from vma.serve.store import Contents

STATIC = Path(__file__).parent / "static"
GRAPHS = "model"


def write_static(model: TrainedModel, folder: Path) -> None:
    """Write the page for a model into an empty folder, or over one that was written so."""
    if (
        folder.exists()
        and not (folder / GRAPHS / MANIFEST).is_file()
        and (folder.is_file() or any(folder.iterdir()))
    ):
        raise InputError(
            f"{folder} holds something else: name an empty folder, or one that does not exist yet."
        )
    write_onnx(model, folder / GRAPHS, overwrite=True)
    write_atomically(folder / GRAPHS / "page.json", msgspec.json.encode(constants(model)))
    for name, content in files().items():
        write_atomically(folder / name, content)


def files() -> dict[str, bytes]:
    """The page, with a module that answers in the place of the one that asks a server."""
    found = {f"page/{path.name}": path.read_bytes() for path in sorted(PAGE.iterdir()) if path.is_file()}
    found["index.html"] = found.pop("page/index.html")
    for path in sorted(STATIC.glob("*/*")):
        name, content = f"{path.parent.name}/{path.name}", path.read_bytes()
        if path.suffix == ".xz":
            name, content = name.removesuffix(".xz"), lzma.decompress(content)
        found[name] = content
    return {**found, "page/api.js": (STATIC / "api.js").read_bytes()}


def constants(model: TrainedModel) -> dict[str, Any]:
    """What the page needs beside the graphs: examples, and the random numbers that the server's answers come from.

    A score and a recognition begin with the same seed each time, so their draws are a handful of constants.
    """
    source, again = (torch.Generator().manual_seed(SEED) for _ in range(2))
    size = model.model.latent
    return {
        "binarize": options_for(model.config).binarize is not None,
        "uniforms": torch.rand(SAMPLES, dtype=torch.float64, generator=source).tolist(),
        "noise": torch.randn(SAMPLES, size, dtype=torch.float32, generator=source).flatten().tolist(),
        "draws": torch.randn(DRAWS, size, dtype=torch.float32, generator=again).flatten().tolist(),
        "tries": tries(model).flatten().tolist(),
        "examples": examples(model),
    }


def tries(model: TrainedModel) -> Float[Tensor, "tries height width"]:
    """The uniform numbers that typical drawings are made with: each pixel's median where pixels are independent."""
    if isinstance(model.model.likelihood, ReadingOrder):
        return uniforms_of(model.size)
    return torch.full((1, *model.size), 0.5)


def examples(model: TrainedModel) -> list[dict[str, str]]:
    """The examples that the server would add."""
    memory = Contents().add(model, EXAMPLES, None).known()
    rows = zip(memory.names, pixels(memory.items), strict=True)
    return [{"label": label, "pixels": ink} for label, ink in rows]
