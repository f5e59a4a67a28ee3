"""A memory in one file: items and keys as safetensors, labels and sources as JSON in its header. No pickle."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import torch
from jaxtyping import Float
from torch import Tensor

from vma.errors import InputError
from vma.fewshot.items import Labels, Sources
from vma.files import from_outside, write_atomically
from vma.names import label_of, plain
from vma.tensor_files import FileKind, read_tensors, tensor_bytes

MEMORY_FILE = FileKind("vma-memory", "memory")


@dataclass(frozen=True)
class StoredMemory:
    """The content of a memory's file.

    Attributes:
        items: Images of ink.
        labels: One for each item.
        sources: The file that each item came from; unknown in files of earlier versions.
        keys: The keys in the file, computed by the model that wrote it.
        fingerprint: The fingerprint of that model.
    """

    items: Float[Tensor, "memory *image"]
    labels: Labels
    sources: Sources
    keys: Tensor | None
    fingerprint: str

    def keys_of(self, fingerprint: str, matching: int) -> Float[Tensor, "memory matching"] | None:
        """The keys, if the model of that `fingerprint` made them, one per item and all finite; else None."""
        keys = self.keys
        if (
            keys is None
            or self.fingerprint != fingerprint
            or keys.dtype not in (torch.float32, torch.float64)
        ):
            return None
        return keys if keys.shape == (len(self.items), matching) and bool(keys.isfinite().all()) else None


def memory_bytes(stored: StoredMemory) -> bytes:
    """The content of a memory's file; items are stored as the 8-bit levels that they came from."""
    header = {
        "labels": msgspec.json.encode(stored.labels).decode(),
        "sources": msgspec.json.encode(stored.sources).decode(),
        "model": stored.fingerprint,
    }
    tensors = {"items": (stored.items * 255).round().to(torch.uint8)}
    if stored.keys is not None:
        tensors["keys"] = stored.keys
    return tensor_bytes(MEMORY_FILE, header, tensors)


def write_memory(path: Path, stored: StoredMemory) -> None:
    """Write a memory to `path`, atomically; only its owner may read a new file."""
    write_atomically(path, memory_bytes(stored), private=True)


def read_memory(path: Path, shape: tuple[int, ...]) -> StoredMemory:
    """The memory in `path`, for a model of images of this `shape`."""
    header, tensors = read_tensors(path, MEMORY_FILE)
    items = check_items(path, tensors, shape)
    return StoredMemory(
        items,
        read_words(path, header, "labels", len(items), label_of),
        read_words(path, header, "sources", len(items), plain)
        if "sources" in header
        else (None,) * len(items),
        tensors.get("keys"),
        header.get("model", ""),
    )


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


def read_words(
    path: Path, header: Mapping[str, str], what: str, count: int, clean: Callable[[str], str]
) -> tuple[str | None, ...]:
    """The labels or sources in the header, one for each item, as text that is safe to show."""
    with from_outside(f"{path} has no readable {what}: it is damaged"):
        words = msgspec.json.decode(header.get(what, ""), type=tuple[str | None, ...])
    if len(words) != count:
        raise InputError(f"{path} holds {count} items but {len(words)} {what}: it is damaged.")
    return tuple(None if word is None else clean(word) or None for word in words)
