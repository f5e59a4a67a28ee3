"""A user's images (arrays, tensors, PIL images, files, folders) as ink, in the size that a model needs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from vma.config import ModelConfig
from vma.data.folder import is_image, read_images
from vma.data.picture import UNREADABLE, FolderOptions, Prepared, complaint, prepare, read_image, warn_of
from vma.errors import InputError
from vma.files import at_home
from vma.model import VMA
from vma.names import label_of, plain

OPTIONS = FolderOptions()
GREY = FolderOptions(level=False, uneven=False, crop=False, thin=False, binarize=None)
COLOUR = FolderOptions(colour=True)
COLOURS = (3, 4)  # channels of RGB and RGBA


def options_for(config: ModelConfig) -> FolderOptions:
    """How images become what this model was trained on, unless the user says otherwise: ink, grey or colour."""
    if config.likelihood != "categorical":
        return OPTIONS
    return GREY if config.channels == 1 else COLOUR


@dataclass(frozen=True)
class Ink:
    """Images as a model sees them.

    Attributes:
        images: 0 is empty, 1 is full ink.
        names: What to call each image: its path, or its place in the list.
        labels: The name of its folder, if that is a folder of a class; else None.
        sources: The file that each image came from, or None; empty if no image came from a file.
        doubts: What is odd about each picture, as a drawing of one character, or None; empty if nobody looked.
    """

    images: Float[Tensor, "images *image"]
    names: tuple[str, ...]
    labels: tuple[str | None, ...]
    sources: tuple[str | None, ...] = ()
    doubts: tuple[str | None, ...] = ()

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True)
class Page:
    """One image being read: as the model sees it, with its path and its folder's class if it has them."""

    picture: Prepared
    path: Path | None = None
    label: str | None = None


Reader = Callable[[Any, tuple[int, int], FolderOptions | None], Ink]


def as_ink(images: Any, size: tuple[int, int], options: FolderOptions | None = None) -> Ink:
    """One or more images of any kind, prepared like those of the dataset `folder`; `Ink` is returned as it is.

    Args:
        images: An array or tensor [height, width], a stack [n, height, width], a colour image [height, width, 3]
            or with an alpha channel, a PIL image, the path of a file or folder, or a list of these. Numbers are
            8-bit grey levels, shares in [0, 1] or truth values; whole numbers that are all 0 or 1 are shares.
        size: Height and width to fit them into, without distortion.
        options: How images become ink (see `FolderOptions`); `OPTIONS` by default.
    """
    ink = read_ink(images, size, options)
    if ink is not images:
        warn_of(dict(zip(ink.names, ink.doubts, strict=True)))
    return ink


def read_ink(images: Any, size: tuple[int, int], options: FolderOptions | None = None) -> Ink:
    """The same without a warning: what is odd is in `doubts`."""
    if isinstance(images, Ink):
        return images
    if not isinstance(options, FolderOptions | None):
        raise InputError(
            f"options must be FolderOptions, e.g. FolderOptions(crop=True), not a {type(options).__name__}."
        )
    pages = list(read_pages(images, size, options or OPTIONS, "The image"))
    if not pages:
        raise InputError("There are no images: give at least one.")
    sources = tuple(None if page.path is None else plain(str(page.path)) for page in pages)
    names = tuple(source or f"image {i + 1} of {len(pages)}" for i, source in enumerate(sources))
    for page, name in zip(pages, names, strict=True):
        if not page.picture.ink.any():
            raise InputError(
                f"There is no ink in {name}: it is blank, or its strokes are too thin or too faint."
            )
    ink = torch.from_numpy(np.stack([page.picture.ink for page in pages])).float() / 255
    doubts = tuple(page.picture.doubt for page in pages)
    return Ink(ink, names, tuple(page.label for page in pages), sources, doubts)


def ink_for(model: VMA, images: Any, options: FolderOptions | None, read: Reader = as_ink) -> Ink:
    """Images as `model` needs them; unsuitable images, or some that it gives no probability, are refused.

    Args:
        read: `as_ink`, or `read_ink` where what is odd is told in another way than by a warning.
    """
    config, chosen = model.config, adapted(options, model.config)
    if isinstance(chosen, FolderOptions) and chosen.colour != (config.channels > 1):
        kind = (
            "in colour: read images with colour=True" if config.channels > 1 else "on ink: leave colour out"
        )
        raise InputError(f"The model works {kind}.")
    ink = read(images, (config.height, config.width), chosen)
    model.likelihood.check("images", ink.images)
    return ink


def adapted(options: FolderOptions | None, config: ModelConfig) -> FolderOptions | None:
    """Options that suit the model, if `options` are None or the usual ones."""
    return options_for(config) if options is None or options == OPTIONS else options


def read_pages(images: Any, size: tuple[int, int], options: FolderOptions, name: str) -> Iterator[Page]:
    """Every image in `images`, in order; errors call it `name`."""
    if isinstance(images, str | Path):
        yield from read_path(at_home(Path(images)), size, options)
    elif isinstance(images, Image.Image):
        yield Page(read_picture(images, size, options, name))
    elif isinstance(images, list | tuple) and not is_numbers(images):
        for i, each in enumerate(images):
            yield from read_pages(each, size, options, f"Image {i + 1} of {len(images)}")
    else:
        for picture in pictures(images, size, options.colour, name):
            yield Page(prepare(picture, size, options))


def read_path(path: Path, size: tuple[int, int], options: FolderOptions) -> Iterator[Page]:
    """The image in a file, or all those of a folder."""
    if path.is_dir():
        found = folder_files(path)
        read = read_images(found, path, size, options)
        for file, picture in read.items():
            yield Page(picture, file, label_of(file.parent.name) if file.parent != path else None)
    elif path.is_file():
        try:
            yield Page(read_image(path, size, options), path)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except UNREADABLE as error:
            raise InputError(f"{path} cannot be read as an image: {complaint(error)}.") from None
    else:
        raise InputError(f"There is no image file or folder {path}.")


def folder_files(folder: Path) -> list[Path]:
    """The images `name.png` in a folder, then those as `class/name.png`, each sorted."""
    loose = sorted(path for path in folder.glob("*") if is_image(path) and path.is_file())
    classes = sorted(path for path in folder.glob("*/*") if is_image(path) and path.parent.name[0] != ".")
    if not loose + classes:
        raise InputError(f"{folder} holds no images, neither as name.png nor as class/name.png.")
    return loose + classes


def read_picture(image: Image.Image, size: tuple[int, int], options: FolderOptions, name: str) -> Prepared:
    """A PIL image as ink; its file may be read only now."""
    if 0 in image.size:
        raise InputError(f"{name} is empty: its size is {image.size[0]}x{image.size[1]}.")
    try:
        return prepare(image, size, options)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except UNREADABLE as error:
        raise InputError(f"{name} cannot be read: {complaint(error)}.") from None


def is_numbers(images: list[Any] | tuple[Any, ...]) -> bool:
    """Whether this is itself an image, as nested lists of numbers, rather than a list of images."""
    first = images[0] if images else None
    return isinstance(first, int | float) or (isinstance(first, list | tuple) and is_numbers(first))


def pictures(values: Any, size: tuple[int, int], in_colour: bool, name: str) -> Iterator[Image.Image]:
    """Every image in an array: one or a stack, in grey or in colour."""
    array = as_array(values, name)
    stack = as_stack(array, size, in_colour, name)
    for i, image in enumerate(stack):
        which = name if len(stack) == 1 else f"Image {i + 1} of {len(stack)}"
        yield Image.fromarray(as_levels(image, which))


def as_array(values: Any, name: str) -> np.ndarray:
    """`values` as an array of numbers."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        values = values.float() if values.dtype == torch.bfloat16 else values
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError):
        raise InputError(f"{name} is not an array of numbers: give rows of the same length.") from None
    if array.dtype.kind not in "buif":
        raise InputError(
            f"{name} is a {type(values).__name__}: give a numeric array, a tensor, a PIL image or a path."
        )
    return array


def as_stack(array: np.ndarray, size: tuple[int, int], in_colour: bool, name: str) -> np.ndarray:
    """The images along the first axis: [n, height, width], or [n, height, width, 3 or 4] in colour."""
    shape = list(array.shape)
    if array.size == 0:
        raise InputError(f"{name} is empty: its shape is {shape}.")
    if array.ndim == 2:
        return array[None]
    if array.ndim == 3:
        if in_colour and shape[0] == COLOURS[0] and tuple(shape[1:]) == size:
            raise InputError(
                f"{name} has its colours first: give them last, [height, width, 3], as they are seen."
            )
        single_colour = shape[-1] in COLOURS and tuple(shape[1:]) != size
        return array[None] if single_colour else array
    if array.ndim == 4 and (shape[-1] in COLOURS or shape[1] == 1):
        return array[:, 0] if shape[1] == 1 else array
    raise InputError(
        f"{name} has the shape {shape}: give [height, width], [n, height, width], or colour as the last axis."
    )


def as_levels(image: np.ndarray, name: str) -> UInt8[np.ndarray, "height width *colour"]:
    """One image's numbers as 8-bit levels."""
    if image.dtype.kind == "f" and not np.isfinite(image).all():
        raise InputError(f"{name} holds NaN or infinite values: remove or replace them first.")
    low, high = float(image.min()), float(image.max())
    top = 1 if image.dtype.kind in "bf" or 0 <= low <= high <= 1 else 255
    if low < 0 or high > top:
        raise InputError(
            f"{name} must have values from 0 to {top}, but they range from {low:g} to {high:g}: "
            "scale them to 0…255 as whole numbers, or to 0…1."
        )
    return np.rint(image.astype(np.float64) * (255 / top)).astype(np.uint8)
