"""The one exception for a user's mistake: a sentence that says what is wrong and what to do."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Input that cannot be used; the message names what is wrong and what to do.

    >>> vma.Memory.of(torch.zeros(0, 28, 28))
    Traceback (most recent call last):
    ...
    vma.errors.InputError: The memory is empty: give it at least one item.
    """


class TooFewImages(InputError):
    """Data with fewer classes, or images of a class, than are asked for."""


# What an installation may leave out, by the extra that brings it.
EXTRAS = {
    "fastapi": "serve",
    "pydantic": "serve",
    "uvicorn": "serve",
    "matplotlib": "plots",
    "jinja2": "plots",
    "tensorboard": "tensorboard",
}


def missing_extra(error: ModuleNotFoundError) -> InputError | None:
    """The error for a package of an extra that is not installed; None where it is another one."""
    name = (error.name or "").split(".")[0]
    if name not in EXTRAS:
        return None
    return InputError(
        f"This needs {name}, which is not installed: pip install 'variational-memory[{EXTRAS[name]}]'."
    )


def unknown_name(kind: str, name: str, names: Iterable[str]) -> InputError:
    """The error for a `name` that is not one of `names`: it lists them and points at the nearest."""
    names = list(names)
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return InputError(f"Unknown {kind} {name!r}: choose one of {', '.join(names)}.{hint}")
