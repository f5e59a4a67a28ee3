"""Limits on input from outside: how much it may unfold to, checked before anything is allocated.

A small file can ask for gigabytes: compression expands a thousandfold, and a header may promise any size.
Sizes are in bytes unless another unit is named.
"""

from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from vma.errors import InputError

PICTURE = 2**26  # pixels of a picture of up to 8 bits a channel
DEEP_PICTURE = 2**24  # pixels of one of 16 or 32 bits, which is worked on as 64-bit numbers
PICTURE_FILE = 2**28  # of a picture's file
MEMBERS = 50_000  # of an archive
ARCHIVE = 2**28  # of all members of an archive together
UNPACKED = 2**28  # of a compressed file
MATRICES = 64  # of a MATLAB file
ELEMENTS = 1024  # of a MATLAB file, matrices or not
WEIGHTS = 2**22  # numbers that a model may allocate beyond three times those in its file
PACKINGS = (0, 8)  # compression methods allowed in an archive: stored and deflated; others expand far more


@runtime_checkable
class Picture(Protocol):
    """What Pillow knows of a picture before it reads a pixel."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""

    @property
    def mode(self) -> str:
        """The kind of its pixels."""


def check_picture(picture: Picture, name: str, most: int = PICTURE) -> None:
    """Refuse a picture with too many pixels; call it before any pixel is read."""
    deep = picture.mode.startswith(("I", "F"))
    limit = min(most, DEEP_PICTURE) if deep else most
    width, height = picture.size
    if width * height > limit:
        raise InputError(f"{name} has {width}x{height} pixels: make it smaller, {limit} pixels at most.")


@runtime_checkable
class Member(Protocol):
    """An entry of a zip archive."""

    file_size: int
    compress_type: int
    filename: str


def check_members(members: Iterable[Member], name: str, limit: int = ARCHIVE) -> None:
    """Refuse an archive that has too many entries, unpacks to too much, or uses an unusual compression."""
    members = list(members)
    if len(members) > MEMBERS:
        raise InputError(f"{name} has {len(members)} entries, more than {MEMBERS}: it was not read.")
    if odd := [each.filename for each in members if each.compress_type not in PACKINGS]:
        raise InputError(
            f"{name} packs {odd[0]!r} in an unusual way: pack it again, as an ordinary zip file."
        )
    declared = sum(each.file_size for each in members)
    if declared > limit:
        raise InputError(
            f"{name} unpacks to {declared} bytes, more than the {limit} expected: it was not read."
        )
