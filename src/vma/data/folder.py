"""A user's own images: one folder a class, `class/name.png`, of any mode and size."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from vma.data.dataset import Dataset
from vma.errors import InputError, unknown_name

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp")
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")
POLARITIES = ("auto", "yes", "no")
DEEP = ("I", "F")  # modes of more than 8 bits
FAINTEST = 16  # of 255: weaker ink than this is noise of the paper
# What Pillow raises for a file that is no image, or a broken or an enormous one.
UNREADABLE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning)


@dataclass(frozen=True)
class FolderOptions:
    """How images become ink on an empty background, in this order.

    Attributes:
        invert: Whether the ink is dark on light paper. `auto` decides for each image: its border is light.
        level: Take the grey of the border for empty and the strongest ink, once fitted, for full: for photographs,
            pencil and thin lines.
        crop: Cut each image to its ink (pixels of at least half the strongest), with a margin.
        margin: Empty border left after cropping, as a share of the side.
        colour: Keep colours, for models with three channels: an image is then [3, height, width], 255 − red,
            green and blue, so that white paper is empty; nothing else is done to it but to fit it.
        binarize: Pixels of at least this share of full ink become 255 and the others 0; None keeps grey.
        held_out: Share of the classes that only the part `test` has; the part `all` has every class.
        seed: Decides which classes those are.
        skip_unreadable: Load the rest where some images cannot be read, instead of stopping.
    """

    invert: Literal["auto", "yes", "no"] = "auto"
    level: bool = False
    crop: bool = False
    margin: float = 0.1
    colour: bool = False
    binarize: float | None = 0.5
    held_out: float = 0.2
    seed: int = 0
    skip_unreadable: bool = False

    def __post_init__(self) -> None:
        if self.invert not in POLARITIES:
            raise unknown_name("invert", self.invert, POLARITIES)
        if not 0 <= self.margin < 0.5:
            raise InputError(f"The margin must lie in [0, 0.5), not {self.margin}.")
        if self.binarize is not None and not 0 <= self.binarize <= 1:
            raise InputError(
                f"binarize is a share of full ink, so it must lie in [0, 1], not {self.binarize}."
            )


def load_folder(
    part: str, *, size: int = 28, data: Path | None = None, folder: FolderOptions | None = None
) -> Dataset:
    """Images in `data`, a class for each sub-folder, fitted into `size`×`size` without distortion."""
    options = folder or FolderOptions()
    if data is None or not data.expanduser().is_dir():
        raise InputError(
            "The dataset folder needs --data with a folder of class/name.png"
            + (f": {data} is none." if data else ", e.g. --data my-symbols.")
        )
    if size < 1:
        raise InputError(f"Size {size} must be 1 or more.")
    paths = image_paths(data.expanduser())
    images = read_images(paths, data, (size, size), options)
    classes, labels = np.unique([path.parent.name for path in images], return_inverse=True)
    everything = Dataset(
        name="folder",
        split="all",
        images=np.stack(list(images.values())),
        labels=labels.astype(np.int64),
        classes=tuple(classes.tolist()),
        provenance=f"{data}, {len(images)} of {len(paths)} images; {options}",
    )
    return everything if part == "all" else part_of(everything, part, options)


def part_of(everything: Dataset, part: str, options: FolderOptions) -> Dataset:
    """`test`: the classes held out; `train`: the others."""
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
) -> dict[Path, UInt8[np.ndarray, "*image"]]:
    """Each readable image by its path; the unreadable ones are counted and named in an error or a warning."""
    images, bad = {}, []
    for path in paths:
        try:
            images[path] = read_image(path, size, options)
        except UNREADABLE:
            bad.append(str(path.relative_to(folder.expanduser())))
    if bad:
        names = ", ".join(bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
        message = f"{len(bad)} of {len(paths)} images in {folder} cannot be read: {names}"
        if not (options.skip_unreadable and images):
            raise InputError(f"{message}. Remove them, or load the rest with skip_unreadable.")
        warnings.warn(f"{message}. They were left out.", stacklevel=4)
    return images


def read_image(path: Path, size: tuple[int, int], options: FolderOptions) -> UInt8[np.ndarray, "*image"]:
    """One image file as ink."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(path, formats=FORMATS) as image:
            return as_picture(image, size, options)


def as_picture(
    image: Image.Image, size: tuple[int, int], options: FolderOptions
) -> UInt8[np.ndarray, "*image"]:
    """Ink of `size`, or colours."""
    if not options.colour:
        return normalise(lightness(image), size, options)
    if image.mode.startswith(DEEP):
        image = Image.fromarray(lightness(image))
    ink = 255 - np.array(on_paper(image).convert("RGB"), dtype=np.uint8)
    return np.stack([fit(channel, size) for channel in np.moveaxis(ink, 2, 0)])


def normalise(
    light: UInt8[np.ndarray, "rows columns"], size: tuple[int, int], options: FolderOptions
) -> UInt8[np.ndarray, "height width"]:
    """Grey levels (255 is white) as ink (255 is full) of `size` (height, width): turn, level, crop, fit, binarize.

    An image of that size already, all 0 and 255 with an empty border, comes out as it was.
    """
    ink = 255 - light if dark_on_light(light, options) else light
    if options.level:
        ink = above_paper(ink)
    if options.crop:
        ink = crop(ink, options.margin)
    small = fit(ink, size)
    if options.level:
        small = to_full(small)
    if options.binarize is None:
        return small
    return np.where(small >= max(1, 255 * options.binarize), np.uint8(255), np.uint8(0))


def lightness(image: Image.Image) -> UInt8[np.ndarray, "height width"]:
    """Grey levels, with transparent pixels as white paper and 16-bit images scaled to 8."""
    if image.mode.startswith(DEEP):
        values = np.asarray(image, dtype=np.float64)
        top = 65535.0 if image.mode.startswith("I") else 1.0
        return np.rint(np.clip(values / top, 0, 1) * 255).astype(np.uint8)
    return np.array(on_paper(image).convert("L"), dtype=np.uint8)


def on_paper(image: Image.Image) -> Image.Image:
    """The image with white paper where it is transparent."""
    if not image.has_transparency_data:
        return image
    paper = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(paper, image.convert("RGBA"))


def dark_on_light(light: UInt8[np.ndarray, "height width"], options: FolderOptions) -> bool:
    """Whether the ink is dark on light paper: as the options say, or else by the border."""
    if options.invert != "auto":
        return options.invert == "yes"
    return border_level(light) >= 128


def border_level(levels: UInt8[np.ndarray, "height width"]) -> float:
    """The median level of the outermost pixels."""
    return float(np.median(np.concatenate([levels[0], levels[-1], levels[:, 0], levels[:, -1]])))


def above_paper(ink: UInt8[np.ndarray, "height width"]) -> UInt8[np.ndarray, "height width"]:
    """Ink less the level of the border, which is the paper's."""
    paper = np.uint8(border_level(ink))
    return np.maximum(ink, paper) - paper


def to_full(ink: UInt8[np.ndarray, "height width"]) -> UInt8[np.ndarray, "height width"]:
    """Ink scaled so that the strongest is full; an image with next to none stays empty."""
    strongest = int(ink.max())
    return ink if strongest < FAINTEST else np.rint(ink * (255 / strongest)).astype(np.uint8)


def crop(ink: UInt8[np.ndarray, "height width"], margin: float) -> UInt8[np.ndarray, "rows columns"]:
    """The box around the ink, with `margin` of the longer side empty on each edge."""
    strong = ink >= max(1, int(ink.max()) / 2)
    if not strong.any():
        return ink
    rows, columns = np.flatnonzero(strong.any(1)), np.flatnonzero(strong.any(0))
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    border = round(max(ink.shape) * margin / (1 - 2 * margin))
    return np.pad(ink, border)


def fit(ink: UInt8[np.ndarray, "rows columns"], size: tuple[int, int]) -> UInt8[np.ndarray, "height width"]:
    """The image in the middle of an empty canvas of the proportions of `size`, scaled by area."""
    scale = max(ink.shape[0] / size[0], ink.shape[1] / size[1])
    rows, columns = (max(round(scale * want), have) for want, have in zip(size, ink.shape, strict=True))
    top, left = (rows - ink.shape[0]) // 2, (columns - ink.shape[1]) // 2
    canvas = np.zeros((rows, columns), dtype=np.uint8)
    canvas[top : top + ink.shape[0], left : left + ink.shape[1]] = ink
    return np.array(Image.fromarray(canvas).resize((size[1], size[0]), Image.Resampling.BOX))
