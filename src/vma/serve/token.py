"""The token: given, read from a file or the environment, or made up."""

import os
import secrets
import stat
from pathlib import Path

from vma.errors import InputError
from vma.files import at_home
from vma.serve.guard import is_loopback

VARIABLE = "VMA_TOKEN"
SHORTEST, LONGEST = 8, 256


def choose_token(host: str, token: str | None, file: Path | None = None) -> str | None:
    """The token to ask for: as given, else from `file`, else from VMA_TOKEN; made up where one is needed.

    None on a loopback address, unless one is given.
    """
    if token is not None and file is not None:
        raise InputError("Give --token or --token-file, not both.")
    given = read_token(file) if file is not None else token if token is not None else os.environ.get(VARIABLE)
    if given is None:
        return None if is_loopback(host) else secrets.token_urlsafe(24)
    if not SHORTEST <= len(given) <= LONGEST or not given.isascii() or not given.isprintable():
        raise InputError(
            f"The token must have {SHORTEST} or more plain characters, {LONGEST} at most: leave it out to have one "
            "made up."
        )
    return given


def read_token(file: Path) -> str:
    """The first line of a file that nobody else can read."""
    file = at_home(file)
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{file} is not a file: name one that holds the token.")
        if found.st_mode & (stat.S_IRGRP | stat.S_IROTH):
            raise InputError(f"Others can read the token in {file}: make it yours alone, by chmod 600.")
        with file.open("rb") as opened:
            lines = opened.read(4 * LONGEST).decode("ascii", "replace").splitlines()
    except OSError as error:
        raise InputError(f"Cannot read the token in {file}: {error.strerror}.") from None
    return lines[0].strip() if lines else ""
