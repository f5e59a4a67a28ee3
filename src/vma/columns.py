"""One column of a table whose rows lie in several arrays, in memory or on disk, read by address."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Int


class Column:
    """Several arrays, one after the other, of which only the rows that are asked for are read.

    Args:
        parts: The arrays, all of one type and with rows of one shape.
        empty: An array without rows, for a table that has no parts yet.
    """

    def __init__(self, parts: Sequence[np.ndarray], empty: np.ndarray) -> None:
        self.parts, self.empty = list(parts), empty
        self.ends = np.cumsum([0, *(len(part) for part in self.parts)])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, addresses: Int[np.ndarray, "*rows"]) -> Any:
        """The rows at these addresses."""
        flat = np.asarray(addresses).reshape(-1)
        order = np.argsort(flat, kind="stable")
        ordered = flat[order]
        found = np.empty((len(flat), *self.empty.shape[1:]), self.empty.dtype)
        firsts = np.searchsorted(ordered, self.ends).tolist()
        for home, (first, last) in enumerate(pairwise(firsts)):
            if first < last:
                found[first:last] = self.parts[home][ordered[first:last] - self.ends[home]]
        rows = np.empty_like(found)
        rows[order] = found
        return rows.reshape(*np.shape(addresses), *self.empty.shape[1:])

    def slice(self, start: int, stop: int) -> np.ndarray:
        """The rows from `start` up to `stop`."""
        stop = min(stop, len(self))
        found = [
            part[max(start - first, 0) : stop - first]
            for part, first, last in zip(self.parts, self.ends, self.ends[1:], strict=False)
            if first < stop and last > start
        ]
        return np.concatenate(found) if found else self.empty
