"""How users name the items of a memory: by numbers, which are addresses, and by labels, which are text or None."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from vma.checks import is_whole
from vma.errors import InputError
from vma.names import label_of

Labels = tuple[str | None, ...]


def as_labels(labels: Any, count: int) -> Labels:
    """`labels` as text, one for each of `count` images; a single label serves all of them."""
    if labels is None or isinstance(labels, str) or is_whole(labels):
        return (as_label(labels),) * count
    if isinstance(labels, np.ndarray | Tensor):
        labels = labels.tolist()
    if not isinstance(labels, Sequence):
        raise InputError(
            f"Labels must be a list with one label for each image, not a {type(labels).__name__}."
        )
    if len(labels) != count:
        raise InputError(f"There are {count} images but {len(labels)} labels: give one each.")
    return tuple(as_label(label) for label in labels)


def as_label(label: Any) -> str | None:
    """One label as text: words, or a whole number; None stays None."""
    if label is None:
        return None
    if (isinstance(label, str) or is_whole(label)) and label_of(str(label)):
        return label_of(str(label))
    raise InputError(f"A label must be text or a whole number, not {label!r}.")


def as_numbers(items: Any, count: int) -> list[int]:
    """One or more numbers of items, checked against a memory of `count` items."""
    values = np.atleast_1d(np.asarray(items)).tolist()
    if not values or any(type(i) is not int or not 0 <= i < count for i in values):
        raise InputError(f"Items are numbered from 0 to {count - 1}, so {items!r} names none.")
    return values


def as_number(item: Any, count: int) -> int:
    """The number of one item, checked."""
    first, *others = as_numbers(item, count)
    if others:
        raise InputError(f"Name one item, not {1 + len(others)}.")
    return first
