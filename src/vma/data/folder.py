"""A user's own images, of any mode and size: one folder per class, `class/name.png`."""

import warnings
from pathlib import Path

import numpy as np

from vma.data.dataset import Dataset
from vma.data.picture import UNREADABLE, FolderOptions, Prepared, read_image, warn_of
from vma.errors import InputError
from vma.files import at_home
from vma.names import label_of, plain

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp")


def load_folder(
    part: str, *, size: int = 28, data: Path | None = None, folder: FolderOptions | None = None
) -> Dataset:
    """Images in `data`, where each sub-folder is a class, fitted into `size`×`size` without distortion."""
    options = folder or FolderOptions()
    if data is None or not at_home(data).is_dir():
        raise InputError(
            "The dataset folder needs --data with a folder of class/name.png"
            + (f": {data} is none." if data else ", e.g. --data my-symbols.")
        )
    if size < 1:
        raise InputError(f"Size {size} must be 1 or more.")
    paths = image_paths(at_home(data))
    images = read_images(paths, data, (size, size), options)
    warn_of({plain(str(path.relative_to(at_home(data)))): each.doubt for path, each in images.items()})
    classes, labels = np.unique([label_of(path.parent.name) for path in images], return_inverse=True)
    everything = Dataset(
        name="folder",
        split="all",
        images=np.stack([each.ink for each in images.values()]),
        labels=labels.astype(np.int64),
        classes=tuple(classes.tolist()),
        provenance=f"{data}, {len(images)} of {len(paths)} images; {options}",
    )
    return everything if part == "all" else part_of(everything, part, options)


def part_of(everything: Dataset, part: str, options: FolderOptions) -> Dataset:
    """`test`: the held-out classes; `train`: the others."""
    count = round(options.held_out * len(everything.classes))
    if not 0 < count < len(everything.classes):
        raise InputError(
            f"Holding out {options.held_out} of {len(everything.classes)} classes leaves no {part}: "
            "use the part 'all', or another held_out."
        )
    train, test = everything.hold_out_classes(count, options.seed)
    chosen = test if part == "test" else train
    return chosen.subset_classes(chosen.classes, split=part)


def image_paths(folder: Path) -> list[Path]:
    """All `class/name.png` (or another suffix of SUFFIXES), sorted; hidden files are left out."""
    paths = sorted(path for path in folder.glob("*/*") if is_image(path) and path.parent.name[0] != ".")
    if not paths:
        raise InputError(f"{folder} holds no images as class/name.png: make one sub-folder for each class.")
    return paths


def is_image(path: Path) -> bool:
    """Whether the name is that of an image, and not of a hidden file."""
    return path.suffix.lower() in SUFFIXES and path.name[0] != "."


def read_images(
    paths: list[Path], folder: Path, size: tuple[int, int], options: FolderOptions
) -> dict[Path, Prepared]:
    """Each readable image by its path; an error or a warning counts and names the unreadable ones."""
    images, bad = {}, []
    for path in paths:
        try:
            images[path] = read_image(path, size, options)
        except UNREADABLE:
            bad.append(plain(str(path.relative_to(at_home(folder)))))
    if bad:
        names = ", ".join(bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
        message = f"{len(bad)} of {len(paths)} images in {folder} cannot be read: {names}"
        if not (options.skip_unreadable and images):
            raise InputError(f"{message}. Remove them, or load the rest with skip_unreadable.")
        warnings.warn(f"{message}. They were left out.", stacklevel=4)
    return images
