"""The commands `vma memory build | add | forget | relabel | index | sharpen | info | verify | rekey`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tyro.conf import Positional

from vma.data.picture import FolderOptions
from vma.errors import InputError
from vma.fewshot.building import fill, sources_in
from vma.fewshot.images import OPTIONS
from vma.fewshot.large_memory import LargeMemory
from vma.fewshot.rekeying import rekey
from vma.fewshot.sharpening import ITEMS
from vma.fewshot.trained import TrainedModel, load
from vma.large import indexing
from vma.large.indexing import AUTO, chosen, read_saved
from vma.large.snapshot import Snapshot, is_large, open_snapshot
from vma.large.verifying import QUERIES, check, check_files
from vma.large.writer import Writer
from vma.pretrained import DEFAULT
from vma.runs.processes import Processes, processes

Images = Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FOLDER|FILES...")]
Folder = Annotated[Path, tyro.conf.arg(metavar="MEMORY")]
Items = Annotated[tuple[int, ...], tyro.conf.arg(metavar="ITEMS...")]


def build(
    images: Positional[Images],
    *,
    out: Path,
    model: Path = Path(DEFAULT),
    label: str | None = None,
    index: str = AUTO,
    server: str = "",
    folder: FolderOptions = OPTIONS,
) -> None:
    """Make a memory on disk of many images. Ended in between, the same command goes on from there.

    Several processes share the work: torchrun --nproc-per-node N -m vma memory build ...

    Args:
        images: Folders of class/name.png or name.png, image files, and arrays of images (.npy).
        out: The memory's folder.
        model: Folder of a run, file of a model, or name of one in the box (`vma models`).
        label: The label of all of them, instead of those of their folders.
        index: `exact`, `faiss`, `milvus`, or another that is installed; `auto` goes by the number of items.
        server: Address of the engine, for an index that has one, such as http://localhost:19530.
        folder: How images become ink.
    """
    with processes("cpu") as team:
        trained, sources = load(model), sources_in(images)
        if team.is_first and not is_large(out):
            trained.create_memory(out, index=index, server=server)
        team.together()
        memory = opened(trained, out, folder)
        new = grown(memory, sources, label, team)
    finish(memory, new, team)


def add(
    memory: Positional[Folder],
    images: Positional[Images],
    *,
    model: Path = Path(DEFAULT),
    label: str | None = None,
    folder: FolderOptions = OPTIONS,
) -> None:
    """Add images to a memory on disk; those that it has are left out.

    Args:
        memory: The memory's folder.
        images: As for `vma memory build`.
        model: The model whose keys the memory holds.
        label: The label of all of them, instead of those of their folders.
        folder: How images become ink.
    """
    with processes("cpu") as team:
        known = opened(load(model), memory, folder)
        new = grown(known, sources_in(images), label, team)
    finish(known, new, team)


def grown(memory: LargeMemory, sources: list, label: str | None, team: Processes) -> int:
    """Add images, of which each process makes keys of its share; the first one keeps them."""
    with bar("items", shown=team.is_first) as progress:
        return fill(memory, sources, label, progress, team)


def finish(memory: LargeMemory, new: int, team: Processes) -> None:
    """Keep the index too, which is the work of one process."""
    if team.is_first:
        keep_index(memory)
        print(f"{new} new items; {memory.folder} holds {len(memory)}.")


def keep_index(memory: LargeMemory) -> None:
    """Build the index, with a progress bar, and keep it."""
    with bar("index") as progress:
        memory.progress = progress
        memory.save_index()


def forget(memory: Positional[Folder], items: Positional[Items]) -> None:
    """Forget some items; their numbers are never given to others.

    Args:
        memory: The memory's folder.
        items: Their numbers.
    """
    with Writer(memory) as writer:
        writer.forget(items)
        print(f"{memory} holds {len(writer.snapshot)} items.")


def relabel(memory: Positional[Folder], items: Positional[Items], *, label: str) -> None:
    """Give some items another label.

    Args:
        memory: The memory's folder.
        items: Their numbers.
        label: The label.
    """
    with Writer(memory) as writer:
        writer.relabel(items, label)


def index(memory: Positional[Folder], name: Positional[str] = AUTO, *, server: str = "") -> None:
    """Search a memory by another index from now on, or make its index anew.

    Args:
        memory: The memory's folder.
        name: `exact`, `faiss`, `milvus`, or another that is installed; `auto` goes by the number of items.
        server: Address of the engine, for an index that has one, such as http://localhost:19530.
    """
    with Writer(memory) as writer, bar("index") as progress:
        changed, before = indexing.with_index(writer.snapshot, name, server), writer.snapshot
        indexing.discard(memory)
        made = indexing.open_index(changed, progress=progress)
        about = changed.manifest
        snapshot = writer.commit(index=name, server=server, collection=about.collection)
        indexing.save_index(snapshot, made)
    print(f"{memory} is searched by {chosen(snapshot)}; {made.count()} items.")
    say_unused(before)


def say_unused(before: Snapshot) -> None:
    """Which collection of a server a memory needs no more."""
    if before.manifest.collection:
        place = before.place()
        print(f"It no longer uses the collection {place.name} of {place.server or 'its server'}: if no copy of the "
              "memory does, drop it there.")  # fmt: skip


def sharpen(memory: Positional[Folder], *, items: int = ITEMS, model: Path = Path(DEFAULT)) -> None:
    """Fit how sharply reads go to what a search finds: bounds of as many reads become tighter.

    Args:
        memory: The memory's folder.
        items: How many of its items are targets, each given all the others.
        model: The model whose keys the memory holds.
    """
    found = opened(load(model), memory, OPTIONS).sharpen(items)
    print(f"{memory} is read with a sharpness of {found:.2f}.")


def info(memory: Positional[Folder]) -> None:
    """Describe a memory on disk.

    Args:
        memory: The memory's folder.
    """
    found = open_snapshot(memory)
    about, saved = found.manifest, read_saved(memory)
    size = sum(path.stat().st_size for path in memory.rglob("*") if path.is_file())
    rows = {
        "items": f"{len(found):,}"
        + (f" ({len(found.forgotten):,} forgotten)" if len(found.forgotten) else ""),
        "classes": f"{len(found.names):,}",
        "images": "x".join(map(str, about.shape)),
        "model": f"{about.model_name} ({about.model[:12]})",
        "segments": f"{len(about.segments):,}",
        "on disk": f"{size / 1e6:,.1f} MB",
        "index": chosen(found) + (f", kept for {saved.rows:,} items" if saved else ", not kept"),
        **({"sharpness": f"{about.sharpness:.2f}"} if about.sharpness != 1 else {}),
        **({"server": f"{about.server}, collection {found.place().name}"} if about.server else {}),
        "log |M|": f"{np.log(max(len(found), 1)):.2f} nats; H(p(a)) {found.prior.entropy_value:.2f}",
    }
    for name, text in rows.items():
        print(f"{name:<9} {text}")


def verify(memory: Positional[Folder], *, model: Path = Path(DEFAULT)) -> None:
    """Check every byte of a memory, its probabilities, and what its index loses.

    Args:
        memory: The memory's folder.
        model: The model whose keys the memory holds.
    """
    with bar("files") as progress:
        check_files(open_snapshot(memory), progress)
    known = opened(load(model), memory, OPTIONS)
    with torch.no_grad():
        addressing = known.model.addressing
        queries = addressing.similarity.queries(addressing.queries(sample(known))).numpy()
    found = check(known.snapshot, known.index, queries, known.candidates)
    print(f"{found.items:,} items, as many as were written; Σ p(a) = {found.mass:.17g}")
    print(f"index {chosen(known.snapshot)}: {found.found:,} items, {found.nats_lost:.4f} nats lost on average by "
          f"{known.candidates} candidates, {found.most_lost:.4f} at most ({len(queries)} queries)")  # fmt: skip


def sample(memory: LargeMemory) -> torch.Tensor:
    """Some items, as queries for the check of the index."""
    alive = memory.snapshot.alive()
    chosen_items = alive[np.linspace(0, len(alive) - 1, min(QUERIES, len(alive))).astype(int)]
    return memory.items_at(np.unique(chosen_items)).to(next(memory.model.parameters()))


def rekey_command(memory: Positional[Folder], *, model: Path = Path(DEFAULT)) -> None:
    """Make all keys of a memory anew, with another model.

    Args:
        memory: The memory's folder.
        model: The model to use from now on.
    """
    trained, before = load(model), open_snapshot(memory)
    with bar("keys") as progress:
        rekey(trained, memory, progress)
    keep_index(opened(trained, memory, OPTIONS))
    print(f"{memory} now has the keys of {trained.name}.")
    if before.manifest.model != trained.fingerprint:
        say_unused(before)


def opened(model: TrainedModel, path: Path, options: FolderOptions) -> LargeMemory:
    """The memory in a folder, which must be a memory on disk."""
    found = model.open_memory(path, options=options) if is_large(path) else None
    if not isinstance(found, LargeMemory):
        raise InputError(f"{path} is not a memory on disk: make one with 'vma memory build'.")
    return found


@contextmanager
def bar(what: str, shown: bool = True) -> Iterator[indexing.Progress]:
    """A progress bar in a terminal; nothing elsewhere."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    hidden = not shown or not Console().is_terminal
    with Progress(*columns, console=Console(stderr=True), disable=hidden) as drawn:
        task = drawn.add_task(what, total=None)
        yield lambda done, total: drawn.update(task, completed=done, total=total)
