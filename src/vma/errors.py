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

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


LONGEST = 1000  # characters of a sentence


def one_line(text: str) -> str:
    """The text as one line that a terminal can show: control characters are escaped, and a long text is cut."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST // 2]} … {shown[-LONGEST // 2 :]}"


class TooFewImages(InputError):
    """Data with fewer classes, or images of a class, than are asked for."""


class Interrupted(KeyboardInterrupt):
    """Training was interrupted, and has been saved; `signal` is the number of the signal that did it."""

    def __init__(self, signal: int) -> None:
        super().__init__(f"interrupted by signal {signal}, and saved")
        self.signal = signal


# Packages that an installation may leave out, each with the extra that installs it.
EXTRAS = {
    "fastapi": "serve",
    "pydantic": "serve",
    "uvicorn": "serve",
    "matplotlib": "plots",
    "jinja2": "plots",
    "tensorboard": "tensorboard",
    "huggingface_hub": "hub",
    "sklearn": "sklearn",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "faiss": "faiss",
    "pymilvus": "milvus",
}


def missing_extra(error: ModuleNotFoundError) -> InputError | None:
    """The error for a package that belongs to an extra and is not installed; None for any other package."""
    name = (error.name or "").split(".")[0]
    if name not in EXTRAS:
        return None
    return InputError(
        f"This needs {name}, which is not installed: pip install 'variational-memory[{EXTRAS[name]}]'."
    )


def unknown_name(kind: str, name: str, names: Iterable[str]) -> InputError:
    """The error for a `name` that is not among `names`: those that begin with it, or all and the nearest."""
    names = list(names)
    begun = [each for each in names if name and each.startswith(str(name))]
    if len(begun) > 1:
        return InputError(f"Unknown {kind} {name!r}: the names that begin with it are {', '.join(begun)}.")
    near = begun or difflib.get_close_matches(str(name), names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return InputError(f"Unknown {kind} {name!r}: choose one of {', '.join(names)}.{hint}")
