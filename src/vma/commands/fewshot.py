"""The commands `vma imagine | recognise | score | explain | export | info`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from vma.data.folder import FolderOptions
from vma.errors import InputError
from vma.fewshot.explanation import Explanation
from vma.fewshot.image_memory import ImageMemory
from vma.fewshot.images import OPTIONS, ink_for
from vma.fewshot.tables import explanation_json, recognition_rows, score_rows, write_rows
from vma.fewshot.trained import load
from vma.files import write_atomically
from vma.storage import load_model, model_file, read_model, save_model

Model = Annotated[Path, tyro.conf.arg(metavar="MODEL")]
Images = Annotated[tuple[Path, ...], tyro.conf.arg(metavar="IMAGES...")]
RunFolder = Annotated[Path, tyro.conf.arg(metavar="RUN")]
File = Annotated[Path, tyro.conf.arg(metavar="FILE")]


def imagine(
    model: Positional[Model],
    memory: Path,
    *,
    n: int = 16,
    label: str | None = None,
    item: int | None = None,
    temperature: float = 1.0,
    seed: int = 0,
    binary: bool = False,
    out: Path = Path("imagined.png"),
    folder: FolderOptions = OPTIONS,
) -> None:
    """Imagine new images like those in memory, and write them as a PNG picture beside the items they came from.

    Args:
        model: Folder of a run, or file of a model.
        memory: Folder of images, as class/name.png or name.png, or a saved memory.
        n: How many.
        label: Only from items of this label.
        item: Only from the item of this number.
        temperature: Multiplies the standard deviation of p(z|m): 0 gives its mean. With ink in reading order it
            also divides the log-odds of every pixel.
        seed: The same seed gives the same images.
        binary: Show images as they were drawn, instead of the probability of ink.
        out: Where to write the picture.
        folder: How images become ink.
    """
    from vma.fewshot.figures import imagined_png  # here, since plotting takes a second to import

    check_suffix(out, (".png",))
    known = open_memory(model, memory, folder)
    drawn = known.imagine(n, label=label, item=item, temperature=temperature, seed=seed)
    write_atomically(out, imagined_png(known, drawn, binary=binary))
    print(f"{n} images from {len(set(drawn.items.tolist()))} of {len(known)} items in memory: {out}")


def recognise(
    model: Positional[Model],
    images: Positional[Images],
    memory: Path,
    *,
    by: Literal["joined", "address", "proposals", "likelihood"] = "joined",
    samples: int = 8,
    seed: int = 0,
    out: Path | None = None,
    folder: FolderOptions = OPTIONS,
) -> None:
    """Say which class of the memory each image is of.

    Args:
        model: Folder of a run, or file of a model.
        images: Image files or folders of them.
        memory: Folder of images, as class/name.png or name.png, or a saved memory.
        by: `joined`: by q(a|x) and the likelihood of the items that it proposes; `address`: by q(a|x) alone;
            `proposals`: by the likelihood of these items; `likelihood`: by that of all items, which takes longer.
        samples: Draws of z for each item whose likelihood is asked for.
        seed: Of the draws.
        out: Also write all probabilities to this .csv or .json file.
        folder: How images become ink.
    """
    check_suffix(out, (".csv", ".json"))
    known = open_memory(model, memory, folder)
    targets = ink_for(known.model, list(images), folder)
    found = known.recognise(targets, by=by, samples=samples, seed=seed)
    write_rows(out, recognition_rows(targets.names, found, known))
    table = Table("image", "class", "probability", "deciding items", box=None)
    for name, each in zip(targets.names, found, strict=True):
        deciding = ", ".join(
            f"{i} {known.names[i]} ({100 * share:.0f} %)" for i, share in each.items if share >= 0.05
        )
        table.add_row(name, each.label, f"{100 * each.probabilities[each.label]:.1f} %", deciding)
    print_table(table)


def score(
    model: Positional[Model],
    images: Positional[Images],
    memory: Path,
    *,
    samples: int = 64,
    seed: int = 0,
    out: Path | None = None,
    folder: FolderOptions = OPTIONS,
) -> None:
    """Score images by log p(x|M), and flag those that are unlike everything in memory.

    Args:
        model: Folder of a run, or file of a model.
        images: Image files or folders of them.
        memory: Folder of images, as class/name.png or name.png, or a saved memory.
        samples: K; more give a higher and steadier score.
        seed: Of the draws.
        out: Also write the scores to this .csv or .json file.
        folder: How images become ink.
    """
    check_suffix(out, (".csv", ".json"))
    known = open_memory(model, memory, folder)
    targets = ink_for(known.model, list(images), folder)
    scores = known.score(targets, samples=samples, seed=seed)
    write_rows(out, score_rows(targets.names, scores))
    table = Table("image", "log p(x|M)", "bits/pixel", "surprise", "novel", box=None)
    for name, each in zip(targets.names, scores, strict=True):
        novel = {None: "?", True: "yes", False: "no"}[each.novel]
        table.add_row(name, f"{each.log_p:.1f}", f"{each.bits_per_pixel:.3f}", f"{each.surprise:.2f}", novel)
    print_table(table)
    if scores[0].reason:
        print(f"novel is unknown: {scores[0].reason}.")


def explain(
    model: Positional[Model],
    image: Positional[Annotated[Path, tyro.conf.arg(metavar="IMAGE")]],
    memory: Path,
    *,
    samples: int = 64,
    seed: int = 0,
    out: Path = Path("explained.png"),
    folder: FolderOptions = OPTIONS,
) -> None:
    """Show where the model looks for one image: q(a|x), the top items, a reconstruction, KL_a and KL_z.

    Args:
        model: Folder of a run, or file of a model.
        image: The image file.
        memory: Folder of images, as class/name.png or name.png, or a saved memory.
        samples: K.
        seed: Of the draws.
        out: Where to write it: a picture (.png), or all numbers (.json).
        folder: How images become ink.
    """
    check_suffix(out, (".png", ".json"))
    known = open_memory(model, memory, folder)
    found = known.explain(image, samples=samples, seed=seed)
    write_atomically(out, content(known, found, out))
    items = ", ".join(f"{each.item} ({100 * each.q:.0f} %)" for each in found.top)
    print(f"{found.label}: {100 * found.probabilities[found.label]:.1f} % of q(a|x); items {items}")
    print(f"log p(x|M) {found.log_p:.1f}, KL_a {found.kl_a:.2f}, KL_z {found.kl_z:.2f} nats: {out}")


def content(memory: ImageMemory, found: Explanation, out: Path) -> bytes:
    """What `vma explain` writes to `out`."""
    if out.suffix.lower() == ".json":
        return explanation_json(found)
    from vma.fewshot.figures import explained_png  # here, since plotting takes a second to import

    return explained_png(memory, found)


def print_table(table: Table) -> None:
    """Print a table as wide as it is, so that names are whole in a file or a pipe too."""
    console = Console(highlight=False, markup=False)
    wide = console.measure(table, options=console.options.update(width=10_000)).maximum
    Console(highlight=False, markup=False, width=max(wide, console.width)).print(table)


def open_memory(model: Path, memory: Path, options: FolderOptions) -> ImageMemory:
    """The memory in a saved file, or of the images in a folder."""
    trained = load(model)
    if memory.suffix.lower() == ".safetensors":
        return trained.open_memory(memory, options=options)
    return trained.remember(memory, options=options)


def check_suffix(out: Path | None, suffixes: tuple[str, ...]) -> None:
    """Refuse a file of another kind before any work is done."""
    if out is not None and out.suffix.lower() not in suffixes:
        raise InputError(f"{out} must end in {' or '.join(suffixes)}.")


def info(path: Path, /) -> None:
    """Describe a saved model.

    Args:
        path: The model file, or the folder of a run.
    """
    file = model_file(path)
    config, tensors = read_model(file)
    print(f"{file}: {sum(tensor.numel() for tensor in tensors.values()):,} parameters")
    for name, value in asdict(config).items():
        print(f"  {name:<14} {value}")


def export(run: Positional[RunFolder], file: Positional[File], *, overwrite: bool = False) -> None:
    """Write the model of a run to one file: weights as safetensors, the configuration in its header.

    Args:
        run: The folder of the run.
        file: Where to write it, e.g. characters.safetensors.
        overwrite: Replace the file if there is one.
    """
    model = load_model(model_file(run))
    if file.is_dir():
        raise InputError(f"{file} is a folder: name a file, e.g. {file / 'model.safetensors'}.")
    if file.exists() and not overwrite:
        raise InputError(f"{file} exists: choose another name, or add --overwrite.")
    save_model(model, file)
    print(f"{file}: {file.stat().st_size / 1e6:.1f} MB")
