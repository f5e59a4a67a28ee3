"""New keys, of another model, for all items of a memory on disk; an interrupted run goes on where it stopped."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from vma.errors import InputError
from vma.fewshot.large_memory import ceiling_of, scores_of
from vma.fewshot.trained import TrainedModel
from vma.large.indexing import Progress, discard
from vma.large.manifest import Entry
from vma.large.segments import SUFFIX, digest_of, read_table, write_segment
from vma.large.snapshot import SEGMENTS
from vma.large.writer import Writer, as_rows
from vma.masses import masses_of, units

AT_ONCE = 256  # items that are embedded between two reports


def rekey(model: TrainedModel, folder: Path, progress: Progress) -> None:
    """Make all keys anew with this model; the memory stays with the old model until the last segment is done."""
    with Writer(folder) as writer:
        if tuple(model.model.image_shape) != writer.manifest.shape:
            shape = "x".join(map(str, writer.manifest.shape))
            raise InputError(f"{folder} holds images of {shape}, which this model does not take.")
        if writer.manifest.rekeying != model.fingerprint:
            writer.commit(rekeying="")
            writer.commit(rekeying=model.fingerprint)
        entries = tuple(
            rekeyed(model, writer, segment, progress) for segment in range(len(writer.manifest.segments))
        )
        masses = [read_table(folder / SEGMENTS, entry)["masses"] for entry in entries]
        gone = writer.snapshot.forgotten
        total = sum(units(part) for part in masses) - units(np.concatenate([*masses, np.empty(0)])[gone])
        discard(folder)
        writer.commit(
            model=model.fingerprint, model_name=model.name, matching=model.config.matching,
            ceiling=ceiling_of(model.model), segments=entries, total=str(total), rekeying="", sharpness=1.0,
        )  # fmt: skip


def rekeyed(model: TrainedModel, writer: Writer, segment: int, progress: Progress) -> Entry:
    """One segment with the keys of this model; a segment that an interrupted process has made is used again."""
    old = writer.manifest.segments[segment]
    name = f"rekeyed-{model.fingerprint[:12]}-{old.sha256[:16]}"
    path = writer.folder / SEGMENTS / f"{name}{SUFFIX}"
    if path.is_file():
        return Entry(name, old.rows, path.stat().st_size, digest_of(path))
    rows, before = as_rows(writer.snapshot, segment), int(writer.snapshot.keys.ends[segment])
    parts = []
    for first in range(0, len(rows), AT_ONCE):
        ink = torch.from_numpy(rows.items[first : first + AT_ONCE].copy()).float() / 255
        parts.append(model.model.remember(ink).keys.float())
        progress(before + first + len(ink), writer.manifest.rows)
    keys = torch.cat(parts)
    masses = masses_of(scores_of(model.model, keys), ceiling_of(model.model))
    return write_segment(writer.folder / SEGMENTS, name, replace(rows, keys=keys.numpy(), masses=masses))
