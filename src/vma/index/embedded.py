"""An index inside this process, by faiss: lists of compressed keys, of which those nearest to a query are read."""

import importlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from vma.errors import InputError
from vma.files import write_atomically
from vma.index.protocol import NOWHERE, Addresses, Found, Keys, Place, few, rescored

faiss: Any = importlib.import_module("faiss")  # its own types say less than what there is
FILE = "faiss.index"
MANY = (
    5_000_000  # items above which keys are kept in 4 bits for each pair of numbers, and read again from disk
)
PROBES = 32  # lists that a query goes through
WIDER = 4  # candidates whose keys are read again from disk for each one that is asked for
TRAINING = 40  # keys for each list, from which the lists are learned
ROUNDS = 8  # of k-means: more change next to nothing


def lists_for(items: int) -> int:
    """A power of two near 4 √|M|, at most 8192."""
    return min(8192, max(16, 2 ** round(math.log2(4 * math.sqrt(max(items, 16))))))


def description(items: int, matching: int) -> str:
    """How faiss is to make an index of so many keys: its coarse quantiser is flat."""
    if items < MANY:
        return f"IVF{lists_for(items)},SQ8"
    return f"IVF{lists_for(items)},PQ{matching // 2}x4fs"


class FaissIndex:
    """Approximate: the lists whose middles are nearest to the query, and the best in them.

    Keys of 8 bits are ranked as they are, since a proposal reads the exact keys of what is found anyway. Those of 4
    bits are ranked again by their exact keys.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        path = place.folder / FILE
        self.index = read(path) if path.is_file() else trained(place)
        if self.index.d != place.matching:
            raise InputError(f"{path} is of keys of {self.index.d} numbers, not {place.matching}: delete it.")
        self.index.nprobe = PROBES
        self.fast_scan = "FastScan" in type(self.index).__name__
        self.deleted: set[int] = set()

    def add(self, addresses: Addresses, keys: Keys, labels: Addresses) -> None:
        """Take these keys in, in place of those that are there; lists that are scanned fast keep both."""
        if not self.fast_scan:
            self.delete(addresses)
        self.index.add_with_ids(np.ascontiguousarray(keys, np.float32), addresses.astype(np.int64))

    def delete(self, addresses: Addresses) -> None:
        """Find these no more; lists that are scanned fast keep them, and leave them out of what is found."""
        if self.fast_scan:
            self.deleted |= set(addresses.tolist())
            return
        gone = np.ascontiguousarray(addresses, np.int64)
        self.index.remove_ids(faiss.IDSelectorArray(len(gone), faiss.swig_ptr(gone)))

    def search(
        self, queries: Float[np.ndarray, "batch matching"], top: int, label: int | None = None
    ) -> Found:
        """The best in the nearest lists; of a label with few items, the best of all."""
        queries = np.ascontiguousarray(queries, np.float32)
        if label is not None:
            return self.within(queries, top, label)
        if not self.fast_scan:
            scores, addresses = self.index.search(queries, top)
            return Found(addresses, np.where(addresses == NOWHERE, -np.inf, scores))
        _, addresses = self.index.search(queries, top * WIDER)
        return rescored(queries, self.left(addresses), top, self.place)

    def left(self, addresses: np.ndarray) -> np.ndarray:
        """The same without what was deleted."""
        return np.where(np.isin(addresses, list(self.deleted)), -1, addresses) if self.deleted else addresses

    def within(self, queries: np.ndarray, top: int, label: int) -> Found:
        """Among the items of a label, by their exact keys."""
        found = few(queries, top, label, self.place)
        if found is not None:
            return found
        selected = faiss.IDSelectorBitmap(np.packbits(self.place.labels() == label, bitorder="little"))
        options = faiss.SearchParametersIVF(sel=selected, nprobe=4 * PROBES)
        _, addresses = self.index.search(queries, top * WIDER, params=options)
        return rescored(queries, self.left(addresses), top, self.place)

    def count(self) -> int:
        """How many items can be found."""
        return int(self.index.ntotal) - len(self.deleted)

    def __iter__(self) -> Iterator[int]:
        lists = self.index.invlists
        for number in range(self.index.nlist):
            size = lists.list_size(number)
            if size:
                ids = faiss.rev_swig_ptr(lists.get_ids(number), size)
                yield from (int(each) for each in ids if int(each) not in self.deleted)

    def save(self) -> None:
        """Write the lists to one file."""
        write_atomically(self.place.folder / FILE, faiss.serialize_index(self.index).tobytes())


def trained(place: Place) -> Any:
    """An empty index whose lists are learned from a sample of the keys."""
    index = faiss.index_factory(
        place.matching, description(place.items, place.matching), faiss.METRIC_INNER_PRODUCT
    )
    index.cp.niter = ROUNDS
    index.cp.min_points_per_centroid = 1
    sample = place.sample(TRAINING * index.nlist)
    if len(sample) < index.nlist:
        raise InputError(f"{index.nlist} lists are learned from as many keys or more, not {len(sample)}.")
    index.train(np.ascontiguousarray(sample, np.float32))
    if "FastScan" not in type(index).__name__:
        index.set_direct_map_type(faiss.DirectMap.Hashtable)
    return index


def read(path: Path) -> Any:
    """The index in a file."""
    try:
        return faiss.read_index(str(path))
    except RuntimeError:
        raise InputError(f"{path} is not an index, or is damaged: delete it, and it is made anew.") from None
