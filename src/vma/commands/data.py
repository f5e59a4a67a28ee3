"""The commands `vma data list | show | verify | fetch`."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from vma.data.contact_sheet import contact_sheet
from vma.data.dataset import Dataset
from vma.data.picture import FolderOptions
from vma.data.registry import DATASETS, Entry, load_dataset
from vma.data.sources import check_published, locate, obtain, search_folders
from vma.errors import InputError

AS_USUAL = FolderOptions()


def list_datasets(data: Path | None = None) -> None:
    """Print a table of all datasets: whether their files are here, and how large they are.

    Args:
        data: Folder to look into first; else VMA_DATA.
    """
    table = Table("dataset", "state", "size", "what it is", box=None, header_style="bold")
    for name in DATASETS:
        table.add_row(name, *described(name, data))
    console = Console()
    console.print(table)
    looked = ", then ".join(str(folder) for folder in search_folders(data))
    console.print(f"\nFiles are looked for in {looked}.", soft_wrap=True)


def described(name: str, data: Path | None) -> tuple[str, str, str]:
    """State, size and summary of a dataset; if its package is broken, what is wrong with it."""
    try:
        entry = DATASETS[name]
    except InputError as error:
        return "broken", "–", str(error)
    return *state(entry, data), entry.summary


def state(entry: Entry, data: Path | None) -> tuple[str, str]:
    """State and size of a dataset's files, e.g. ("ready", "14.1 MB")."""
    if not entry.files:
        return ("yours" if entry.yours else "ready"), "–"
    found = found_files(entry, data)
    if found is not None:
        return "ready", megabytes(sum(path.stat().st_size for path in found))
    here = sum(locate(source, data) is not None for source in entry.files)
    sizes = [source.size for source in entry.files]
    total = "unknown" if None in sizes else megabytes(sum(size or 0 for size in sizes))
    return (f"{here} of {len(entry.files)} files" if here else "to fetch"), total


def found_files(entry: Entry, data: Path | None) -> list[Path] | None:
    """The files of a dataset on this machine; None if some are missing."""
    if entry.instead is not None and (path := locate(entry.instead, data)):
        return [path]
    paths = [locate(source, data) for source in entry.files]
    return None if None in paths else [path for path in paths if path is not None]


def megabytes(size: int) -> str:
    """`size` bytes as text in megabytes."""
    return f"{size / 1e6:.1f} MB"


def show(
    name: Positional[str],
    part: str | None = None,
    out: Path | None = None,
    *,
    size: int | None = None,
    split: str | None = None,
    data: Path | None = None,
    rows: int = 12,
    columns: int = 20,
    seed: int = 0,
    folder: FolderOptions = AS_USUAL,
) -> None:
    """Write a contact sheet: a PNG picture with one row of images for each of some classes.

    Args:
        name: Name of the dataset.
        part: Which part; the dataset's first by default.
        out: Where to write the picture; `NAME-PART.png` by default.
        size: Side of the images in pixels.
        split: How classes are divided, for omniglot.
        data: Folder with the dataset's files; for the dataset `folder`, with the images themselves.
        rows: Number of classes.
        columns: Number of images of each class.
        seed: Decides which classes and images are shown.
        folder: How images are read, for the dataset `folder`.
    """
    part = part or DATASETS[name].parts[0]
    dataset = load_dataset(name, part, size=size, split=split, data=data, folder=folder)
    out = out or Path(f"{name}-{part}.png")
    try:
        contact_sheet(dataset, rows=rows, columns=columns, seed=seed).save(out, format="PNG")
    except OSError as error:
        raise InputError(f"Cannot write {out} ({error.strerror}): choose another place by --out.") from error
    print(f"{describe(dataset)}\nContact sheet: {out}")


def describe(dataset: Dataset) -> str:
    """One line on a loaded dataset."""
    height, width = dataset.size
    classes = f" of {len(dataset.classes)} classes" if dataset.classes else ""
    ink = dataset.images.mean() / 255
    return f"{dataset.name} {dataset.split}: {len(dataset)} images{classes}, {height}×{width}, {ink:.4f} ink"


def verify(name: Positional[str | None] = None, *, data: Path | None = None) -> None:
    """Load every part of a dataset, or of all that are here, and check counts, shapes and content hashes.

    Args:
        name: Name of the dataset; all of them by default.
        data: Folder to look into first; else VMA_DATA.
    """
    names = [name] if name else [other for other, entry in DATASETS.items() if is_here(entry, data)]
    failures = [failure for each in names for failure in verify_dataset(each, data)]
    if failures:
        raise InputError(f"{len(failures)} part(s) failed: " + " ".join(failures))
    print(f"{len(names)} dataset(s) verified: {', '.join(names)}.")


def is_here(entry: Entry, data: Path | None) -> bool:
    """Whether a dataset can be loaded without a download and without a folder of the user's own."""
    return not entry.yours and found_files(entry, data) is not None


def verify_dataset(name: str, data: Path | None) -> list[str]:
    """Print a line for each split and part of a dataset, and return what is wrong with it."""
    entry, failures = DATASETS[name], []
    for source, path in zip(entry.files, found_files(entry, data) or (), strict=False):
        try:
            check_published(source, path)
        except InputError as error:
            print(f"FAILED  {name} {path.name}")
            failures.append(str(error))
    splits: Sequence[str | None] = entry.splits or (None,)
    for split in splits:
        for part in entry.parts:
            try:
                dataset = load_dataset(name, part, split=split, data=data, download=False)
                print(f"ok      {describe(dataset)}")
            except InputError as error:
                print(f"FAILED  {name} {part}")
                failures.append(str(error))
    return list(dict.fromkeys(failures))


def fetch(name: Positional[str], *, data: Path | None = None) -> None:
    """Download the files of a dataset to the cache, unless they are here, and verify what they hold.

    Args:
        name: Name of the dataset.
        data: Folder to look into first; else VMA_DATA.
    """
    entry = DATASETS[name]
    if not entry.files:
        print(f"{name} needs no download.")
        return
    paths = found_files(entry, data) or [obtain(source, data) for source in entry.files]
    print("\n".join(f"{path} ({megabytes(path.stat().st_size)})" for path in paths))
    verify(name, data=data)
