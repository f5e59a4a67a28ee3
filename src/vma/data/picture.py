"""From a picture as people have it to an image as a model needs it: which steps it takes, and in which order."""

import io
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps, UnidentifiedImageError

from vma.data.ink import crop, doubt, fit, redrawn, to_full
from vma.data.paper import LARGEST, Levels, above_border, above_paper, at_most, border_level, dark_on_light
from vma.errors import InputError, unknown_name
from vma.files import check_ordinary, said
from vma.limits import PICTURE_FILE, check_picture
from vma.ranges import Seed, Share, Within, check_ranges

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")
POLARITIES = ("auto", "yes", "no")
LONGEST = (
    2**13
)  # pixels of a side that is only fitted: a margin around is as wide as the longer side asks for
DEEP = ("I", "F")  # modes of more than 8 bits
# What Pillow raises for a file that is no image, or a broken or an enormous one.
UNREADABLE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Image.DecompressionBombWarning)


class DoubtfulPicture(UserWarning):
    """A picture that hardly is the drawing of one character."""


@dataclass(frozen=True)
class FolderOptions:
    """How images become ink on an empty background, in this order.

    >>> options = vma.data.FolderOptions(held_out=0.5)
    >>> len(vma.data.load_dataset("folder", "train", data="my-symbols", size=20, folder=options))
    2

    Attributes:
        upright: Turn each image the way up that its camera says (EXIF).
        invert: Whether the ink is dark on light paper. `auto` decides for each image.
        level: Take the paper for empty and the strongest ink for full: for photographs, pencil and thin lines.
        uneven: Look for the paper around every pixel, however it is lit; else it is the grey of the border.
        crop: Cut each image to its ink, with a margin.
        margin: Empty border left after cropping, as a share of the side; by default as Omniglot's drawings have it.
        thin: Draw every stroke anew with one pen, as wide as Omniglot's: for print, brushes and markers. Grey
            images (`binarize` None) stay as they are.
        colour: Keep colours, for models with three channels: an image is then [3, height, width], 255 − red,
            green and blue, so that white paper is empty; nothing else is done to it but to turn and fit it.
        binarize: Pixels of at least this share of full ink become 255 and the others 0; None keeps grey.
        held_out: Share of the classes that only the part `test` has; the part `all` has every class.
        seed: Decides which classes those are.
        skip_unreadable: Load the rest where some images cannot be read, instead of stopping.
    """

    upright: bool = True
    invert: Literal["auto", "yes", "no"] = "auto"
    level: bool = True
    uneven: bool = True
    crop: bool = True
    margin: Annotated[float, Within(0.0, 0.5, below=True)] = 0.18
    thin: bool = True
    colour: bool = False
    binarize: Share | None = 0.25
    held_out: Share = 0.2
    seed: Seed = 0
    skip_unreadable: bool = False

    def __post_init__(self) -> None:
        if self.invert not in POLARITIES:
            raise unknown_name("invert", self.invert, POLARITIES)
        check_ranges(self, "folder.")


# The defaults before pictures were cropped and thinned: what is missing in the run.json of that time.
EARLIER = {
    "upright": False, "invert": "auto", "level": False, "uneven": False, "crop": False, "margin": 0.1,
    "thin": False, "colour": False, "binarize": 0.5, "held_out": 0.2, "seed": 0, "skip_unreadable": False,
}  # fmt: skip


@dataclass(frozen=True)
class Prepared:
    """A picture as a model sees it.

    Attributes:
        ink: 0 is empty and 255 full; [3, height, width] in colour.
        doubt: What is odd about it for the drawing of one character, if anything is.
    """

    ink: UInt8[np.ndarray, "*image"]
    doubt: str | None = None


def read_image(path: Path, size: tuple[int, int], options: FolderOptions) -> Prepared:
    """One image file as ink."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(io.BytesIO(read_picture_file(path)), formats=FORMATS) as image:
            return prepare(image, size, options)


def read_picture_file(path: Path) -> bytes:
    """The bytes of an image file; Pillow would make room for as many as a file says that it has."""
    check_ordinary(path, "picture")
    if path.stat().st_size > PICTURE_FILE:
        raise InputError(f"The picture has more than {PICTURE_FILE} bytes: make it smaller.")
    return path.read_bytes()


def complaint(error: Exception) -> str:
    """What Pillow says of a picture that it cannot read, without the names of its own objects."""
    return "it is of no known kind" if isinstance(error, UnidentifiedImageError) else said(error)


def prepare(image: Image.Image, size: tuple[int, int], options: FolderOptions) -> Prepared:
    """An image as ink of `size` (height, width), or in colour."""
    check_picture(image, "The picture")
    image = ImageOps.exif_transpose(image) if options.upright else image
    if not options.colour:
        return normalise(lightness(image, options.invert), size, options)
    if image.mode.startswith(DEEP):
        image = Image.fromarray(lightness(image))
    ink = 255 - np.array(on_paper(image, "white").convert("RGB"), dtype=np.uint8)
    return Prepared(np.stack([fit(channel, size) for channel in np.moveaxis(ink, 2, 0)]))


def normalise(light: Levels, size: tuple[int, int], options: FolderOptions) -> Prepared:
    """Grey levels (255 is white) as ink (255 is full) of `size`: polarity, paper, crop, strokes, binarize.

    A picture of that size already is taken for a drawing that was made for it: it is not cropped or thinned, and
    comes out as it was if it is all 0 and 255 with an empty border.
    """
    if light.shape == size:
        return Prepared(binarized(fit(on_even_paper(light, options), size), options))
    light = at_most(light, LARGEST if options.uneven or options.thin else LONGEST)
    ink = on_uneven_paper(light, options) if options.uneven else on_even_paper(light, options)
    if options.thin and options.binarize is not None:
        found = redrawn(ink, size, options.margin if options.crop else None)
    else:
        found = binarized(fit(crop(ink, options.margin) if options.crop else ink, size), options)
    return Prepared(found, doubt(ink, found) if options.level and options.uneven else None)


def on_even_paper(light: Levels, options: FolderOptions) -> Levels:
    """Ink that is dark where the border is light, unless the options know; above the border, where they say so."""
    is_dark = border_level(light) >= 128 if options.invert == "auto" else options.invert == "yes"
    ink = 255 - light if is_dark else light
    return above_border(ink) if options.level else ink


def on_uneven_paper(light: Levels, options: FolderOptions) -> Levels:
    """Ink of the options' polarity, or as it seems; above the paper around it, where they say so."""
    is_dark = dark_on_light(light) if options.invert == "auto" else options.invert == "yes"
    ink = 255 - light if is_dark else light
    return above_paper(ink) if options.level else ink


def binarized(ink: Levels, options: FolderOptions) -> Levels:
    """0 and 255 by the options' threshold, or grey; the strongest ink is full where `level` is on."""
    ink = to_full(ink) if options.level else ink
    if options.binarize is None:
        return ink
    return np.where(ink >= max(1, 255 * options.binarize), np.uint8(255), np.uint8(0))


# Colours and transparency


def lightness(image: Image.Image, invert: str = "yes") -> Levels:
    """Grey levels, with paper where it is transparent and 16-bit images scaled to 8."""
    if image.mode.startswith(DEEP):
        values = np.asarray(image, dtype=np.float64)
        top = 65535.0 if image.mode.startswith("I") else 1.0
        return np.rint(np.clip(values / top, 0, 1) * 255).astype(np.uint8)
    if image.has_transparency_data:
        is_light = invert == "no" or (invert == "auto" and white_on_transparent(image.convert("RGBA")))
        image = on_paper(image, "black" if is_light else "white")
    return np.array(image.convert("L"), dtype=np.uint8)


def on_paper(image: Image.Image, colour: str) -> Image.Image:
    """The image with paper of a colour where it is transparent."""
    if not image.has_transparency_data:
        return image
    return Image.alpha_composite(Image.new("RGBA", image.size, colour), image.convert("RGBA"))


def white_on_transparent(image: Image.Image) -> bool:
    """Whether the border is mostly transparent, and next to nothing of what can be seen is dark."""
    light, alpha = np.asarray(image.convert("L")), np.asarray(image.getchannel("A"))
    seen = alpha >= 128
    return border_level(alpha) < 128 and bool(seen.any()) and float(np.mean(light[seen] < 128)) < 0.1


# Doubts


def warn_of(doubts: Mapping[str, str | None], stacklevel: int = 3) -> None:
    """One warning that names the pictures that hardly are drawings of one character, if there are any."""
    odd = [f"{name} ({what})" for name, what in doubts.items() if what]
    if odd:
        more = f" and {len(odd) - 5} more" if len(odd) > 5 else ""
        message = (
            f"{len(odd)} of {len(doubts)} pictures may not be what the model needs, the drawing of one character: "
            f"{', '.join(odd[:5])}{more}."
        )
        warnings.warn(message, DoubtfulPicture, stacklevel=stacklevel)
