"""The commands `vma imagine | recognise | score | explain | models`."""

from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from vma.commands.picture_options import PictureOptions, picture_options, whole
from vma.data.picture import FolderOptions
from vma.errors import InputError
from vma.fewshot.explanation import Explanation
from vma.fewshot.image_memory import ImageMemory
from vma.fewshot.images import OPTIONS, ink_for
from vma.fewshot.items import Item
from vma.fewshot.large_memory import LargeMemory
from vma.fewshot.tables import score_rows, write_rows
from vma.fewshot.trained import load
from vma.files import at_home, check_new_folder, write_atomically
from vma.large.snapshot import is_large
from vma.pretrained import DEFAULT, Card, card_of, pretrained_names, weights_of
from vma.storage import IN_RUN

Model = Annotated[Path, tyro.conf.arg(metavar="MODEL")]
Images = Annotated[tuple[Path, ...], tyro.conf.arg(metavar="[MODEL] IMAGES...")]
AS_USUAL = picture_options(OPTIONS)


def imagine(
    model: Positional[Model] = Path(DEFAULT),
    *,
    memory: Path,
    n: int = 16,
    each: int | None = None,
    label: str | None = None,
    item: int | None = None,
    temperature: float = 1.0,
    seed: int = 0,
    binary: bool = False,
    out: Path = Path("imagined.png"),
    folder: PictureOptions = AS_USUAL,
) -> None:
    """Imagine new images like those in memory: as a PNG picture beside the items they came from, or as a data set.

    `--out FOLDER --each 50` writes FOLDER/class/0001.png and so on, 50 images of every class.

    Args:
        model: Folder of a run, file of a model, or name of one in the box (`vma models`).
        memory: Folder of images, as class/name.png or name.png, or a saved memory, or one on disk (`vma memory`).
        n: How many.
        each: How many of every class, for a data set; `out` is then a folder that is empty or not there yet.
        label: Only from items of this label.
        item: Only from the item of this number.
        temperature: Multiplies the standard deviation of p(z|m): 0 gives its mean. With ink in reading order it
            also divides the log-odds of every pixel.
        seed: The same seed gives the same images.
        binary: Show images as they were drawn, instead of the probability of ink.
        out: Where to write the picture, or the folder of the data set.
        folder: How images become ink.
    """
    if each is not None:
        check_data_set(out, label, item)
        known = open_memory(model, memory, whole(folder))
        if isinstance(known, LargeMemory):
            raise InputError("--each is for a memory that is held whole: name a --label of one on disk.")
        drawn = known.imagine_each(each, temperature=temperature, seed=seed)
        drawn.save(out, binary=binary)
        print(f"{each} images of each of {len(drawn.classes)} classes: {out}")
        return
    from vma.fewshot.figures import imagined_png  # here, since plotting takes a second to import

    check_suffix(out, (".png",))
    known = open_memory(model, memory, whole(folder))
    drawn = known.imagine(n, label=label, item=item, temperature=temperature, seed=seed)
    write_atomically(out, imagined_png(known, drawn, binary=binary))
    print(f"{n} images from {len(set(drawn.items.tolist()))} of {len(known)} items in memory: {out}")


def check_data_set(out: Path, label: str | None, item: int | None) -> None:
    """Refuse options that make no sense for a data set, before any work is done."""
    if label is not None or item is not None:
        raise InputError("--each imagines images of every class: leave --label and --item out.")
    if out.suffix:
        raise InputError(
            f"--each writes a data set, so {out} must be the name of a folder, without a suffix."
        )
    check_new_folder(at_home(out))


def recognise(
    images: Positional[Images],
    *,
    memory: Path,
    by: Literal["joined", "address", "proposals", "likelihood"] = "joined",
    samples: int = 8,
    seed: int = 0,
    novelty: bool = True,
    out: Path | None = None,
    folder: PictureOptions = AS_USUAL,
) -> None:
    """Say which class of the memory each image is of, or that it is new.

    Args:
        images: Image files or folders of them. The first may be the model instead: the folder of a run, the file
            of a model, or the name of one in the box (`vma models`).
        memory: Folder of images, as class/name.png or name.png, or a saved memory, or one on disk (`vma memory`).
        by: `joined`: by q(a|x) and the likelihood of the items that it proposes; `address`: by q(a|x) alone;
            `proposals`: by the likelihood of these items; `likelihood`: by that of all items, which takes longer.
        samples: Draws of z for each item whose likelihood is asked for.
        seed: Of the draws.
        novelty: Also say whether an image is new: of none of the classes in memory.
        out: Also write all probabilities, and the files of the items that decided, to this .csv or .json file.
        folder: How images become ink.
    """
    check_suffix(out, (".csv", ".json"))
    model, files = model_and_images(images)
    known = open_memory(model, memory, whole(folder))
    targets = ink_for(known.model, files, whole(folder))
    found = known.recognise(targets, by=by, samples=samples, seed=seed, novelty=novelty)
    if out is not None:
        found.save(out)
    table = Table("image", "class", "probability", "deciding items", box=None)
    for each in found:
        deciding = ", ".join(
            item_text(item, share) for item, (_, share) in zip(each.deciding, each.items, strict=True)
            if share >= 0.05
        )  # fmt: skip
        table.add_row(each.source, each.verdict, f"{100 * each.probabilities[each.label]:.1f} %", deciding)
    print_table(table)
    if found[0].reason:
        print(f"What is new is unknown: {found[0].reason}.")


def item_text(item: Item, share: float) -> str:
    """An item that decided: its number, its file or else its class, and its share."""
    return f"{item.number} {item.source or item.name} ({100 * share:.0f} %)"


def score(
    images: Positional[Images],
    *,
    memory: Path,
    samples: int = 64,
    seed: int = 0,
    out: Path | None = None,
    folder: PictureOptions = AS_USUAL,
) -> None:
    """Score images by log p(x|M), and flag those that are unlike everything in memory.

    Args:
        images: Image files or folders of them. The first may be the model instead: the folder of a run, the file
            of a model, or the name of one in the box (`vma models`).
        memory: Folder of images, as class/name.png or name.png, or a saved memory, or one on disk (`vma memory`).
        samples: K; more give a higher and steadier score.
        seed: Of the draws.
        out: Also write the scores to this .csv or .json file.
        folder: How images become ink.
    """
    check_suffix(out, (".csv", ".json"))
    model, files = model_and_images(images)
    known = open_memory(model, memory, whole(folder))
    targets = ink_for(known.model, files, whole(folder))
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
    image: Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="[MODEL] IMAGE")]],
    *,
    memory: Path,
    samples: int = 64,
    seed: int = 0,
    out: Path = Path("explained.png"),
    folder: PictureOptions = AS_USUAL,
) -> None:
    """Show where the model looks for one image: q(a|x), the top items, a reconstruction, KL_a and KL_z.

    Args:
        image: The image file; before it may stand the model: the folder of a run, the file of a model, or the
            name of one in the box (`vma models`).
        memory: Folder of images, as class/name.png or name.png, or a saved memory, or one on disk (`vma memory`).
        samples: K.
        seed: Of the draws.
        out: Where to write it: a picture (.png), or all numbers (.json).
        folder: How images become ink.
    """
    check_suffix(out, (".png", ".json"))
    model, files = model_and_images(image)
    if len(files) != 1:
        raise InputError(f"One image is explained at a time, not {len(files)}.")
    known = open_memory(model, memory, whole(folder))
    found = known.explain(files[0], samples=samples, seed=seed)
    write_atomically(out, content(known, found, out))
    items = ", ".join(f"{each.item} ({100 * each.q:.0f} %)" for each in found.top)
    print(f"{found.label}: {100 * found.probabilities[found.label]:.1f} % of q(a|x); items {items}")
    print(f"log p(x|M) {found.log_p:.1f}, KL_a {found.kl_a:.2f}, KL_z {found.kl_z:.2f} nats: {out}")


def content(memory: ImageMemory | LargeMemory, found: Explanation, out: Path) -> bytes:
    """What `vma explain` writes to `out`."""
    if out.suffix.lower() == ".json":
        return found.to_json()
    from vma.fewshot.figures import explained_png  # here, since plotting takes a second to import

    return explained_png(memory, found)


def print_table(table: Table) -> None:
    """Print a table in its full width, so that names are not cut in a file or a pipe."""
    console = Console(highlight=False, markup=False)
    wide = console.measure(table, options=console.options.update(width=10_000)).maximum
    Console(highlight=False, markup=False, width=max(wide, console.width)).print(table)


def model_and_images(paths: tuple[Path, ...]) -> tuple[Path, list[Path]]:
    """The model, if a model comes before the images (else the default one in the box), and the images."""
    if not is_model(paths[0]):
        return Path(DEFAULT), list(paths)
    if len(paths) == 1:
        raise InputError(f"{paths[0]} is a model: name an image, or a folder of them, after it.")
    return paths[0], list(paths[1:])


def is_model(path: Path) -> bool:
    """Whether a path names a model in the box, the file of one, or a folder that holds one."""
    if str(path) in pretrained_names() or path.suffix.lower() == ".safetensors":
        return True
    folder = at_home(path)
    return any((folder / place).is_file() for place in ("run.json", IN_RUN, f"vma/{IN_RUN}"))


def open_memory(model: Path, memory: Path, options: FolderOptions) -> ImageMemory | LargeMemory:
    """The memory in a saved file, in a folder made by `vma memory build`, or made of the images in a folder."""
    trained = load(model)
    if memory.suffix.lower() == ".safetensors" or is_large(memory):
        return trained.open_memory(memory, options=options)
    return trained.remember(memory, options=options)


def check_suffix(out: Path | None, suffixes: tuple[str, ...]) -> None:
    """Refuse a file with another suffix, before any work is done."""
    if out is not None and out.suffix.lower() not in suffixes:
        raise InputError(f"{out} must end in {' or '.join(suffixes)}.")


def models(name: Positional[str | None] = None) -> None:
    """List the models in the box, or show the card of one.

    Args:
        name: Show the card of this model.
    """
    if name is not None:
        print_card(card_of(name))
        return
    table = Table("model", "size", "NLL", "what it is", box=None)
    for each in map(card_of, pretrained_names()):
        megabytes = weights_of(each.name).stat().st_size / 1e6
        mark = " (default)" if each.name == DEFAULT else ""
        table.add_row(each.name + mark, f"{megabytes:.1f} MB", str(each.numbers[0]), each.summary)
    print_table(table)


def print_card(card: Card) -> None:
    """Print what is known about a model."""
    facts = {
        "good for": card.good_for, "not good for": card.bad_for, "trained on": card.data,
        "licence": card.licence, "trained with": card.command,
        "for": f"{card.updates} updates and {card.sleep_updates} asleep, seed {card.seed}", "sha256": card.sha256,
    }  # fmt: skip
    table = Table.grid("", "", padding=(0, 2))
    for name, text in facts.items():
        table.add_row(name, text)
    for each in card.numbers:
        table.add_row(str(each), each.what)
    console = Console(highlight=False, markup=False)
    console.print(f"{card.name}: {card.summary}")
    console.print(table)
