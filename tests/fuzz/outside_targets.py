"""What is fuzzed: who reads an input, and examples of it. Whatever comes, it ends in an answer or in a sentence."""

import asyncio
import gzip
import json
import os
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz import examples
from tests.fuzz.mutation import mutated
from tests.fuzz.target import Target
from tests.helpers.served import blurring_model
from vma.data.arrays import read_mat, read_maybe_gzip, read_npy, read_npz
from vma.errors import InputError
from vma.fewshot.images import as_ink
from vma.fewshot.items import as_label
from vma.fewshot.memory_file import read_memory
from vma.fewshot.tables import as_csv
from vma.fewshot.trained import TrainedModel
from vma.names import label_of, plain
from vma.serve import Access, Store, create_app
from vma.serve.connections import Connection, server_of
from vma.storage import identity

SIDE = 26
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
KEPT = 200  # requests that one server gets before the next begins
SECONDS = 20.0  # that a request may take


def from_file(read: Callable[[Path], Any], suffix: str) -> Callable[[bytes, Path], Any]:
    """A reader of files, given content."""

    def reader(content: bytes, folder: Path) -> Any:
        path = folder / f"input{suffix}"
        path.write_bytes(content)
        return read(path)

    return reader


def read_picture(path: Path) -> None:
    """A picture as ink; a PNG with its checksums mended too, since else hardly any would be read."""
    content = path.read_bytes()
    try:
        as_ink(path, (SIDE, SIDE))
    except InputError:
        mended = examples.mended_png(content)
        if not content.startswith(b"\x89PNG") or mended == content:
            raise
        path.write_bytes(mended)
        as_ink(path, (SIDE, SIDE))


def read_items(path: Path) -> None:
    """The items of a memory."""
    read_memory(path, (SIDE, SIDE))


def read_label(content: bytes, folder: Path) -> None:
    """A name, everywhere that it goes."""
    name = os.fsdecode(content)
    as_csv([{"image": plain(name), "label": label_of(name), "probabilities": {label_of(name): 0.5}}]).decode()
    json.dumps(as_label(name), ensure_ascii=False).encode()


class Line(asyncio.Transport):
    """A connection's other end: it keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.said, self.closing = bytearray(), False

    def write(self, content: bytes) -> None:
        self.said += content

    def close(self) -> None:
        self.closing = True

    abort = close

    def is_closing(self) -> bool:
        return self.closing

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": ("127.0.0.1", 5), "sockname": ("127.0.0.1", 8000)}.get(name, default)

    def can_write_eof(self) -> bool:
        return False

    def pause_reading(self) -> None:
        """Nothing more comes anyway."""

    resume_reading = pause_reading


@cache
def served_model() -> TrainedModel:
    """A model that answers at once."""
    model = blurring_model().eval().requires_grad_(False)
    return TrainedModel(model, "blurring", identity(model))


class Served:
    """A server without a socket."""

    def __init__(self, folder: Path) -> None:
        path = folder / "memory.safetensors"
        path.write_bytes(examples.memories(SIDE)[0])
        self.app = create_app(Store(served_model(), path), Access.to("127.0.0.1", None))
        self.server = server_of(self.app, log_level="critical", lifespan="off")
        self.loop, self.asked, self.process = asyncio.new_event_loop(), 0, os.getpid()
        self.server.config.load()

    def answer(self, content: bytes) -> bytes:
        """What is said to a client that sends this and leaves."""
        self.asked += 1
        return self.loop.run_until_complete(self.talk(content))

    async def talk(self, content: bytes) -> bytes:
        """One connection."""
        line = Line()
        connection = Connection(self.server.config, self.server.server_state, {}, self.loop)
        connection.connection_made(line)  # type: ignore[arg-type]
        if content:  # nothing is never received: a connection that ends says so in another way
            connection.data_received(content)
        while tasks := list(connection.tasks):
            if connection.cycle.more_body and not connection.cycle.response_complete:
                connection.connection_lost(None)
            _, late = await asyncio.wait(tasks, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if len(late) == len(tasks):
                raise TimeoutError("a request is not answered")
        connection.connection_lost(None)
        return bytes(line.said)


SERVED: list[Served] = []


def read_request(content: bytes, folder: Path) -> None:
    """A request, answered with anything but a mistake of ours."""
    if not SERVED or SERVED[0].asked >= KEPT or SERVED[0].process != os.getpid():
        SERVED[:] = [new_served(folder)]
    said = SERVED[0].answer(content)
    if said and not said.startswith(b"HTTP/1.1 "):
        raise AssertionError(f"no answer: {said[:80]!r}")
    if b"HTTP/1.1 500" in said:
        raise AssertionError("a mistake of ours")


def new_served(folder: Path) -> Served:
    """A server with a memory of its own."""
    own = folder / os.urandom(4).hex()
    own.mkdir()
    return Served(own)


def mutation_of(originals: Callable[[], list[bytes]]) -> Callable[[Random], bytes]:
    """A maker of inputs out of right ones, which are made once."""
    kept = cache(originals)
    return lambda chance: mutated(kept(), str(chance.random()))


def make_archive(chance: Random) -> bytes:
    """An archive mutated, or one whose checksums are right though an entry in it is mutated."""
    if chance.random() < 0.5:
        return mutated(archives(), str(chance.random()))
    entries = {f"x{number}.npy": content for number, content in enumerate(arrays())}
    entries[chance.choice(list(entries))] = mutated(arrays(), str(chance.random()))
    return examples.zipped(chance.choice(PACKINGS), entries)


def make_gzip(chance: Random) -> bytes:
    """A packed file mutated, or one whose checksum is right though its content is mutated."""
    content = mutated(gzips(), str(chance.random()))
    return content if chance.random() < 0.5 else gzip.compress(content, 1, mtime=0)


archives, arrays, gzips = cache(examples.archives), cache(examples.arrays), cache(examples.gzips)


def target(
    name: str,
    originals: Callable[[], list[bytes]],
    use: Callable[[bytes, Path], object],
    share: int,
    make: Callable[[Random], bytes] | None = None,
) -> Target:
    """A target whose inputs are mutations of right ones."""
    return Target(name, make or mutation_of(originals), use, share, originals)


TARGETS = (
    target("picture", examples.pictures, from_file(read_picture, ".png"), 20),
    target("archive", archives, from_file(read_npz, ".npz"), 40, make_archive),
    target("array", arrays, lambda content, _: read_npy(content, "the array"), 175),
    target("gzip", gzips, from_file(lambda path: read_maybe_gzip(path, 2**20), ".gz"), 185, make_gzip),
    target("matlab", examples.matlabs, from_file(read_mat, ".mat"), 100),
    target("memory", lambda: examples.memories(SIDE), from_file(read_items, ".safetensors"), 175),
    target("label", examples.labels, read_label, 100),
    target("request", lambda: examples.requests(SIDE), read_request, 20),
)
