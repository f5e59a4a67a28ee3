"""How pictures become ink, as options of the commands that read single pictures."""

from dataclasses import asdict, field, fields, make_dataclass
from typing import TYPE_CHECKING, get_type_hints

from vma.data import FolderOptions

OF_A_DATASET = ("held_out", "seed")  # which classes are for testing: meaningless for a single picture

if TYPE_CHECKING:
    PictureOptions = FolderOptions
else:
    PictureOptions = make_dataclass(
        "PictureOptions",
        [
            (each.name, get_type_hints(FolderOptions)[each.name], field(default=each.default))
            for each in fields(FolderOptions)
            if each.name not in OF_A_DATASET
        ],
        frozen=True,
        namespace={"__doc__": FolderOptions.__doc__},
    )


def picture_options(like: FolderOptions) -> PictureOptions:
    """The same options without those that only a dataset has."""
    return PictureOptions(**{name: value for name, value in asdict(like).items() if name not in OF_A_DATASET})


def whole(options: PictureOptions) -> FolderOptions:
    """The full options that all other code takes."""
    return FolderOptions(**asdict(options))
