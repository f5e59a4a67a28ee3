"""An index on a Milvus server, one or a cluster: shared by all processes and machines that search a memory."""

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from vma.errors import InputError
from vma.index.milvus_server import MilvusServer, address_of, pymilvus
from vma.index.protocol import NOWHERE, Addresses, Found, Keys, Place, best, few

ADDRESS, LABEL, KEY = "address", "label", "key"  # the columns of a collection
SEGMENT = 1_000_000  # items that Milvus keeps together, about; each such segment has lists of its own
PROBES = 32  # lists of a segment that a query goes through
BYTES = 8 << 20  # that are sent at a time; a message may have 64 MB
SOME = 10_000  # addresses that are deleted or listed at a time
MOST = 16_384  # items that Milvus finds at most
PAUSE, LONGEST = 0.2, 3600.0  # seconds between two looks at whether the server is done, and until it must be


def lists_for(items: int) -> int:
    """A power of two near 4 √n, for the n items of a segment; Milvus makes fewer of small segments."""
    return 2 ** round(math.log2(4 * math.sqrt(min(max(items, 16), SEGMENT))))


class MilvusIndex:
    """Approximate: of every segment the lists whose middles are nearest to the query, and the best in them.

    A collection belongs to one memory and one model; any number of processes may read and write it. What was
    written is found by whoever asks next. To ask for that always (`Strong`) costs 200 ms a query, and `Session`
    does not see what it has deleted, nor what others wrote before: so the first question after a change or an
    opening is `Strong`, and all others are `Session`.
    """

    def __init__(self, place: Place) -> None:
        self.place, self.name = place, place.name
        self.server = MilvusServer(address_of(place.server))
        self.probes, self.written, self.read = PROBES, 1, 0
        if not self.server.ask("has_collection", self.name):
            self.create()
        self.check()
        self.server.ask("load_collection", self.name, _async=True)
        wait(self.loaded)

    @property
    def about(self) -> str:
        """What a collection says that it is."""
        return json.dumps({"vma": 1, "model": self.place.model, "matching": self.place.matching})

    def create(self) -> None:
        """Make the collection, which another process may do at the same time."""
        types, schema = pymilvus.DataType, pymilvus.MilvusClient.create_schema(description=self.about)
        schema.add_field(ADDRESS, types.INT64, is_primary=True)
        schema.add_field(LABEL, types.INT64)
        schema.add_field(KEY, types.FLOAT_VECTOR, dim=self.place.matching)
        self.server.ask("create_collection", self.name, schema=schema, consistency_level="Session")
        lists = pymilvus.MilvusClient.prepare_index_params()
        parameters = {"nlist": lists_for(self.place.items)}
        lists.add_index(KEY, index_type="IVF_FLAT", metric_type="IP", params=parameters)
        self.server.ask("create_index", self.name, lists, sync=False)

    def check(self) -> None:
        """Refuse a collection of other keys."""
        found = self.server.ask("describe_collection", self.name)["description"]
        if found != self.about:
            raise InputError(
                f"The collection {self.name} of {self.server.address} holds keys of another model or "
                "something else: 'vma memory index MEMORY milvus --server ...' makes a new one."
            )

    def add(self, addresses: Addresses, keys: Keys, labels: Addresses) -> None:
        """Take these keys in, in place of those that are there; they are on the server's disk when this returns."""
        size = max(1, BYTES // (4 * self.place.matching))
        for first in range(0, len(addresses), size):
            some = slice(first, first + size)
            columns = addresses[some].tolist(), labels[some].tolist(), keys[some].astype(np.float32)
            rows = [{ADDRESS: a, LABEL: c, KEY: k} for a, c, k in zip(*columns, strict=True)]
            self.written += 1
            self.server.ask("upsert", self.name, rows)

    def delete(self, addresses: Addresses) -> None:
        """Find these no more."""
        for first in range(0, len(addresses), SOME):
            self.written += 1
            self.server.ask("delete", self.name, ids=addresses[first : first + SOME].tolist())

    def ask(self, request: str, **options: Any) -> Any:
        """What the server answers when it has heard of all that was written."""
        written = self.written
        level = "Strong" if self.read < written else "Session"
        answer = self.server.ask(request, self.name, consistency_level=level, **options)
        self.read = max(self.read, written)
        return answer

    def search(
        self, queries: Float[np.ndarray, "batch matching"], top: int, label: int | None = None
    ) -> Found:
        """The best in the nearest lists; of a label with few items, the best of all."""
        if label is None:
            return self.nearest(queries, top, "", self.probes)
        found = few(queries, top, label, self.place)
        return self.nearest(queries, top, f"{LABEL} == {label}", 4 * self.probes) if found is None else found

    def nearest(self, queries: np.ndarray, top: int, among: str, probes: int) -> Found:
        """The best of those that an expression holds for."""
        parameters = {"metric_type": "IP", "params": {"nprobe": probes}}
        answer = self.ask(
            "search", data=list(np.ascontiguousarray(queries, np.float32)), limit=min(top, MOST), filter=among,
            anns_field=KEY, search_params=parameters,
        )  # fmt: skip
        addresses = np.full((len(queries), top), NOWHERE, np.int64)
        scores = np.full((len(queries), top), -np.inf, np.float32)
        for row, hits in enumerate(answer):
            addresses[row, : len(hits)] = hits.ids
            scores[row, : len(hits)] = hits.distances
        return best(scores, addresses, top)

    def count(self) -> int:
        """How many items can be found."""
        return int(self.ask("query", filter="", output_fields=["count(*)"])[0]["count(*)"])

    def __iter__(self) -> Iterator[int]:
        wanted = {"filter": f"{ADDRESS} >= 0", "output_fields": [ADDRESS]}
        for page in self.server.pages(self.name, batch_size=SOME, consistency_level="Strong", **wanted):
            yield from (int(each[ADDRESS]) for each in page)

    def save(self) -> None:
        """Have the server put together what came in pieces, and wait until it has made the lists of all."""
        self.server.ask("flush", self.name, patience=LONGEST)
        wait(self.listed)

    def loaded(self) -> bool:
        """Whether the server has it in memory."""
        return str(self.server.ask("get_load_state", self.name)["state"]) == "Loaded"

    def listed(self) -> bool:
        """Whether all items are in lists; the server's `state` is `Finished` before it has begun."""
        found = self.server.ask("describe_index", self.name, KEY)
        return int(found["pending_index_rows"]) == 0 and int(found["indexed_rows"]) >= int(
            found["total_rows"]
        )


def wait(done: Callable[[], bool]) -> None:
    """Until the server is done, or for an hour: what it does goes on without us."""
    end = time.monotonic() + LONGEST
    while not done() and time.monotonic() < end:
        time.sleep(PAUSE)
