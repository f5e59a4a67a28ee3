"""All datasets by name, and the one function that loads any of them."""

from dataclasses import dataclass
from pathlib import Path

from vma.data.binarized_mnist import AMAT, NPZ, load_binarized_mnist
from vma.data.dataset import Dataset
from vma.data.embedded import GlyphOptions, load_glyphs
from vma.data.folder import FolderOptions, load_folder
from vma.data.gmn import FILES, load_gmn
from vma.data.mnist import IDX, load_mnist
from vma.data.omniglot import BACKGROUND, EVALUATION, load_omniglot
from vma.data.omniglot28 import CHARDATA, load_omniglot28, load_stand_in
from vma.data.sources import Source
from vma.errors import InputError, unknown_name


@dataclass(frozen=True)
class Entry:
    """What there is to know of a dataset before it is loaded.

    Attributes:
        summary: One line.
        parts: Names of its parts.
        sizes: Sides of its images; the first is the default. Empty where any size will do.
        splits: Ways to divide its classes; the first is the default.
        files: The files it is read from.
        instead: One file that does as well, where the user has it.
    """

    summary: str
    parts: tuple[str, ...]
    sizes: tuple[int, ...] = ()
    splits: tuple[str, ...] = ()
    files: tuple[Source, ...] = ()
    instead: Source | None = None


DATASETS: dict[str, Entry] = {
    "glyphs": Entry("invented characters, no file needed", ("train", "test")),
    "omniglot": Entry(
        "1623 characters by 20 hands, 26×26",
        ("train", "test"),
        (26, 28, 105),
        ("45-5", "background-evaluation"),
        (BACKGROUND.source, EVALUATION.source),
    ),
    "omniglot-gmn": Entry(
        "GMN's binary Omniglot, 28×28",
        ("train", "test"),
        (28,),
        ("background-evaluation",),
        tuple(file.source for file in FILES.values()),
    ),
    "omniglot28": Entry(
        "Burda's grey Omniglot, 28×28",
        ("train", "valid", "test"),
        (28,),
        (),
        (CHARDATA,),
    ),
    "omniglot28-stand-in": Entry(
        "stand-in for omniglot28",
        ("train", "valid", "test"),
        (28,),
        (),
        (BACKGROUND.source, EVALUATION.source),
    ),
    "binarized-mnist": Entry(
        "Larochelle and Murray's fixed bits",
        ("train", "valid", "test"),
        (28,),
        (),
        tuple(AMAT.values()),
        NPZ,
    ),
    "mnist": Entry(
        "handwritten digits, grey",
        ("train", "test"),
        (28,),
        (),
        tuple(file for pair in IDX.values() for file in pair),
    ),
    "folder": Entry("your own images, class/name.png", ("all", "train", "test")),
}


def load_dataset(
    name: str,
    part: str = "train",
    *,
    size: int | None = None,
    split: str | None = None,
    data: Path | str | None = None,
    folder: FolderOptions | None = None,
    glyphs: GlyphOptions | None = None,
    download: bool = True,
) -> Dataset:
    """One part of a dataset: uint8 images with 0 = background and 255 = ink, labels, names of classes.

    Args:
        name: A name in DATASETS.
        part: `train`, `test`, and for some datasets `valid` or `all`.
        size: Side of the images in pixels; the default is the dataset's own.
        split: How classes are divided, for `omniglot`: `45-5` or `background-evaluation`.
        data: Folder with the files; else VMA_DATA, the cache, a download. For `folder`, the images.
        folder: How images are read, for `folder`.
        glyphs: What is drawn, for `glyphs`.
        download: Whether missing files may be downloaded.
    """
    check_request(name, part, size, split)
    where = None if data is None else Path(data)
    match name:
        case "glyphs":
            return load_glyphs(part, size=26 if size is None else size, options=glyphs)
        case "folder":
            return load_folder(part, where, size=28 if size is None else size, options=folder)
        case "omniglot":
            return load_omniglot(part, split=split or "45-5", size=size or 26, data=where, download=download)
    readers = {
        "omniglot-gmn": load_gmn,
        "omniglot28": load_omniglot28,
        "omniglot28-stand-in": load_stand_in,
        "binarized-mnist": load_binarized_mnist,
        "mnist": load_mnist,
    }
    return readers[name](part, data=where, download=download)


def find_entry(name: str) -> Entry:
    """The entry of a dataset; an unknown name is answered with those there are."""
    if name not in DATASETS:
        raise unknown_name("dataset", name, DATASETS)
    return DATASETS[name]


def check_request(name: str, part: str, size: int | None, split: str | None) -> None:
    """Refuse a name, part, size or split that does not exist."""
    entry = find_entry(name)
    if part not in entry.parts:
        raise unknown_name(f"part of {name}", part, entry.parts)
    if split is not None and split not in entry.splits:
        if not entry.splits:
            raise InputError(f"{name} has only one split, not {split!r}: leave split out.")
        raise unknown_name(f"split of {name}", split, entry.splits)
    if size is not None and entry.sizes and size not in entry.sizes:
        sizes = ", ".join(map(str, entry.sizes))
        raise InputError(f"{name} has no images of size {size}: choose one of {sizes}.")
