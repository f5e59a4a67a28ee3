"""All datasets by name, and the one function that loads any of them."""

import inspect
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vma.data.dataset import Dataset
from vma.data.folder import load_folder
from vma.data.glyphs import GlyphOptions, load_glyphs
from vma.data.gmn import FILES, load_gmn
from vma.data.mnist import AMAT, IDX, NPZ, load_binarized_mnist, load_mnist
from vma.data.omniglot import BACKGROUND, EVALUATION, load_omniglot
from vma.data.omniglot28 import CHARDATA, load_omniglot28, load_stand_in
from vma.data.picture import FolderOptions
from vma.data.sources import Source
from vma.errors import InputError, unknown_name
from vma.registry import Registry


@dataclass(frozen=True)
class Entry:
    """A dataset by name: what is known of it before it is loaded, and how it is loaded.

    Attributes:
        summary: One line.
        parts: Names of its parts.
        load: A function of the part and of options of `load_dataset`: those that it has parameters for, by
            name, among `size`, `split`, `data` (as a Path), `download`, `folder` and `glyphs`. If an option is
            None, the function's default applies.
        sizes: Sides of its images, the default first. Empty if `load` takes any size, or no size.
        splits: Ways to divide its classes, the default first.
        files: The files that it is read from.
        instead: A single file that replaces them, if the user has it.
        yours: Whether its images are the user's own, in the folder `data`.
    """

    summary: str
    parts: tuple[str, ...] = ("train", "test")
    _: KW_ONLY
    load: Callable[..., Dataset]
    sizes: tuple[int, ...] = ()
    splits: tuple[str, ...] = ()
    files: tuple[Source, ...] = ()
    instead: Source | None = None
    yours: bool = False

    def takes(self, option: str) -> bool:
        """Whether `load` has a parameter for an option."""
        parameters = inspect.signature(self.load).parameters
        return option in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


class Datasets(Registry[Entry]):
    """The registry of datasets; an installed package adds one by an entry point of the group `vma.datasets`.

    The entry point has the dataset's name, and its value is an `Entry` or a function that returns one.
    """

    def __getitem__(self, name: str) -> Entry:
        return as_entry(name, super().__getitem__(name))


def as_entry(name: str, value: Any) -> Entry:
    """The entry itself, or the one that a function returns."""
    try:
        entry = value() if callable(value) else value
    except Exception as error:
        raise InputError(
            f"The function that makes the dataset {name!r} failed ({type(error).__name__}: {error}): repair the "
            f"module {value.__module__}."
        ) from error
    if not isinstance(entry, Entry):
        raise InputError(
            f"The dataset {name!r} is registered as {type(entry).__name__}: it must be a vma.data.Entry, or a "
            "function that returns one."
        )
    return entry


THREE_PARTS = ("train", "valid", "test")
DATASETS = Datasets(
    "dataset",
    "vma.datasets",
    {
        "glyphs": Entry("invented characters, no file needed", load=load_glyphs),
        "omniglot": Entry(
            "1623 characters by 20 hands, 26×26",
            load=load_omniglot,
            sizes=(26, 28, 105),
            splits=("45-5", "background-evaluation"),
            files=(BACKGROUND.source, EVALUATION.source),
        ),
        "omniglot-gmn": Entry(
            "GMN's binary Omniglot, 28×28",
            load=load_gmn,
            sizes=(28,),
            splits=("background-evaluation",),
            files=tuple(file.source for file in FILES.values()),
        ),
        "omniglot28": Entry(
            "Burda's grey Omniglot, 28×28", THREE_PARTS, load=load_omniglot28, sizes=(28,), files=(CHARDATA,)
        ),
        "omniglot28-stand-in": Entry(
            "stand-in for omniglot28",
            THREE_PARTS,
            load=load_stand_in,
            sizes=(28,),
            files=(BACKGROUND.source, EVALUATION.source),
        ),
        "binarized-mnist": Entry(
            "Larochelle and Murray's fixed bits",
            THREE_PARTS,
            load=load_binarized_mnist,
            sizes=(28,),
            files=tuple(AMAT.values()),
            instead=NPZ,
        ),
        "mnist": Entry(
            "handwritten digits, grey",
            load=load_mnist,
            sizes=(28,),
            files=tuple(file for pair in IDX.values() for file in pair),
        ),
        "folder": Entry(
            "your own images, class/name.png", ("all", "train", "test"), load=load_folder, yours=True
        ),
    },
)


def register_dataset(name: str, entry: Entry | Callable[[], Entry]) -> None:
    """Add a dataset for this process only; an entry point adds one for every process (see `Datasets`).

    >>> def load_dots(part="train", **options):
    ...     return vma.data.dataset_of(np.eye(8)[:, None, :].repeat(4, 0), name="dots", split=part)
    >>> vma.data.register_dataset("dots", vma.data.Entry("eight dots", ("train",), load=load_dots))
    >>> len(vma.data.load_dataset("dots"))
    32
    """
    DATASETS.register(name, as_entry(name, entry))


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

    >>> vma.data.load_dataset("glyphs", "test", size=20).size
    (20, 20)

    Args:
        name: A name in DATASETS.
        part: `train`, `test`, and for some datasets `valid` or `all`.
        size: Side of the images in pixels; the default is the dataset's own.
        split: How classes are divided, for `omniglot`: `45-5` or `background-evaluation`.
        data: Folder with the files; by default VMA_DATA, the cache, or a download. For `folder`, the images.
        folder: How images are read, for the dataset `folder`.
        glyphs: What is drawn, for the dataset `glyphs`.
        download: Whether missing files may be downloaded.
    """
    entry = DATASETS[name]
    check_request(name, entry, part, size, split)
    options: dict[str, Any] = {
        "size": size,
        "split": split,
        "data": None if data is None else Path(data),
        "folder": folder,
        "glyphs": glyphs,
        "download": download,
    }
    given = {option: value for option, value in options.items() if value is not None and entry.takes(option)}
    return check_loaded(name, entry.load(part, **given))


def check_request(name: str, entry: Entry, part: str, size: int | None, split: str | None) -> None:
    """Refuse a part, size or split that the dataset does not have."""
    if part not in entry.parts:
        raise unknown_name(f"part of {name}", part, entry.parts)
    if split is not None and split not in entry.splits:
        if not entry.splits:
            raise InputError(f"{name} has only one split, not {split!r}: leave split out.")
        raise unknown_name(f"split of {name}", split, entry.splits)
    if size is not None and entry.sizes and size not in entry.sizes:
        sizes = ", ".join(map(str, entry.sizes))
        raise InputError(f"{name} has no images of size {size}: choose one of {sizes}.")
    if size is not None and not entry.sizes and not entry.takes("size"):
        raise InputError(f"{name} has images of only one size: leave size out.")


def check_loaded(name: str, dataset: Any) -> Dataset:
    """The dataset, checked to be a `Dataset` with uint8 images, since anybody may write a loader."""
    if not isinstance(dataset, Dataset):
        raise InputError(f"The loader of {name} returned a {type(dataset).__name__}, not a vma.data.Dataset.")
    if dataset.images.dtype != np.uint8:
        raise InputError(
            f"The loader of {name} returned images of {dataset.images.dtype}, not uint8: use vma.data.dataset_of."
        )
    return dataset
