"""A memory in one file: items and keys as safetensors, labels as JSON in its header. No pickled code."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from vma.errors import InputError
from vma.fewshot.labels import Labels
from vma.files import write_atomically

FORMAT = "vma-memory"
VERSION = 1


@dataclass(frozen=True)
class StoredMemory:
    """What a file of a memory holds.

    Attributes:
        items: Images of ink.
        labels: One for each item.
        keys: Those of the model that wrote it, as found in the file.
        fingerprint: Of that model.
    """

    items: Float[Tensor, "memory *image"]
    labels: Labels
    keys: Tensor | None
    fingerprint: str

    def keys_of(self, fingerprint: str, matching: int) -> Float[Tensor, "memory matching"] | None:
        """The keys, if that model made them and there is a finite one for every item; else None."""
        keys = self.keys
        if keys is None or self.fingerprint != fingerprint or not keys.is_floating_point():
            return None
        return keys if keys.shape == (len(self.items), matching) and bool(keys.isfinite().all()) else None


def memory_bytes(stored: StoredMemory) -> bytes:
    """The content of a memory's file; items are kept as 8-bit levels, which they came from."""
    header = {
        "format": FORMAT,
        "version": str(VERSION),
        "labels": msgspec.json.encode(stored.labels).decode(),
        "model": stored.fingerprint,
    }
    tensors = {"items": (stored.items * 255).round().to(torch.uint8).cpu().contiguous()}
    if stored.keys is not None:
        tensors["keys"] = stored.keys.cpu().contiguous()
    return save(tensors, metadata=header)


def write_memory(path: Path, stored: StoredMemory) -> None:
    """Write a memory to `path`, atomically."""
    write_atomically(path, memory_bytes(stored))


def read_memory(path: Path, shape: tuple[int, ...]) -> StoredMemory:
    """The memory in `path`, for a model of images of this `shape`."""
    if not path.is_file():
        raise InputError(f"There is no memory file {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            check_header(path, header)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is not a memory file, or is damaged: {error}.") from None
    return StoredMemory(
        check_items(path, tensors, shape),
        read_labels(path, header, len(tensors["items"])),
        tensors.get("keys"),
        header.get("model", ""),
    )


def check_header(path: Path, header: Mapping[str, str]) -> None:
    """Refuse a file of something else, or of a later version."""
    if header.get("format") != FORMAT:
        raise InputError(f"{path} is a safetensors file, but not one of a vma memory.")
    version = header.get("version", "")
    if not version.isdecimal() or int(version) > VERSION:
        raise InputError(f"{path} has format version {version!r}, newer than this vma reads: update vma.")


def check_items(
    path: Path, tensors: Mapping[str, Tensor], shape: tuple[int, ...]
) -> Float[Tensor, "memory *image"]:
    """The items, as shares of ink."""
    items = tensors.get("items")
    if items is None or items.ndim not in (3, 4) or items.dtype != torch.uint8 or len(items) == 0:
        raise InputError(f"{path} holds no readable items: it is damaged.")
    if tuple(items.shape[1:]) != shape:
        theirs, ours = ("x".join(map(str, each)) for each in (items.shape[1:], shape))
        raise InputError(
            f"{path} remembers images of {theirs}, but the model works on {ours}: "
            "remember the images themselves with this model."
        )
    return items.float() / 255


def read_labels(path: Path, header: Mapping[str, str], count: int) -> Labels:
    """The labels in the header, one for each item."""
    try:
        labels = msgspec.json.decode(header.get("labels", ""), type=Labels)
    except msgspec.DecodeError:
        raise InputError(f"{path} has no readable labels: it is damaged.") from None
    if len(labels) != count:
        raise InputError(f"{path} holds {count} items but {len(labels)} labels: it is damaged.")
    return labels
