"""`vma export`."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from vma.commands.info import facts
from vma.errors import InputError
from vma.fewshot.trained import load
from vma.storage import load_model, model_file, save_model

RunFolder = Annotated[Path, tyro.conf.arg(metavar="RUN")]
Out = Annotated[Path, tyro.conf.arg(metavar="OUT")]


def export(
    run: Positional[RunFolder],
    out: Positional[Out],
    *,
    overwrite: bool = False,
    half: bool = False,
    hub: bool = False,
    onnx: bool = False,
) -> None:
    """Write the model of a run to one file: weights as safetensors, the configuration in its header.

    Args:
        run: The folder of the run, the file of a model, or the name of one in the box.
        out: Where to write it, e.g. characters.safetensors; a folder with --hub or --onnx.
        overwrite: Replace what is there.
        half: Write the weights in half precision, for half the size.
        hub: Write a folder as the Hugging Face hub has them: weights, configuration and a card to complete.
        onnx: Write a folder of ONNX graphs, each compared with torch, and a manifest that says what each is for.
    """
    if onnx and (hub or half):
        raise InputError("--onnx goes with neither --hub nor --half: write one at a time.")
    if onnx:
        to_onnx(run, out, overwrite)
    elif hub:
        load(run).save_pretrained(out, half=half, overwrite=overwrite)
        print(f"{out}: weights, configuration, and README.md to look through and complete")
    else:
        to_file(run, out, overwrite, half)


def to_file(run: Path, file: Path, overwrite: bool, half: bool) -> None:
    """Write one safetensors file."""
    model = load_model(model_file(run))
    if file.is_dir():
        raise InputError(f"{file} is a folder: name a file, e.g. {file / 'model.safetensors'}.")
    if file.exists() and not overwrite:
        raise InputError(f"{file} exists: choose another name, or add --overwrite.")
    save_model(model.half() if half else model, file, facts(run))
    print(f"{file}: {file.stat().st_size / 1e6:.1f} MB")


def to_onnx(run: Path, folder: Path, overwrite: bool) -> None:
    """Write ONNX graphs, and print how far each is from torch."""
    from vma.export import write_onnx  # here, since onnx is an extra

    manifest = write_onnx(load(run), folder, overwrite=overwrite)
    table = Table("graph", "computes", "size", "largest error", box=None)
    for name, graph in manifest["graphs"].items():
        size = f"{(folder / graph['file']).stat().st_size / 1e6:.1f} MB"
        table.add_row(name, graph["computes"], size, f"{graph['largest_error']:.0e}")
    Console(highlight=False, markup=False).print(table)
    print(f"{folder}: opset {manifest['opset']}, within {manifest['tolerance']:g} of torch")
