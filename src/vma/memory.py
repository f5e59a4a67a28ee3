"""M: the memory. Raw items (few-shot) or a parameter (learned memory); a read is `m_a = M[a]`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from vma.checks import as_images, as_tensor, check_shape, check_values
from vma.errors import InputError

START = 0.3  # standard deviation of learned items at the start (docs/lab-notes)


@dataclass(frozen=True)
class Memory:
    """M = {m_1, …, m_|M|}, with optional labels and an optional mask of the items in use.

    `Memory.of` builds one from raw images and checks them. A memory is a value: growing, shrinking and joining
    return a new one, and no model has to be retrained for it.

    >>> memory = vma.Memory.of(torch.zeros(3, 28, 28), labels=[0, 0, 1])
    >>> len(memory), len(memory.join(memory)), memory.keep(torch.tensor([2])).labels
    (3, 6, tensor([1]))

    Attributes:
        items: What each address holds: images, or learned vectors.
        labels: Class of each item, if known.
        mask: True where an item may be addressed; None where all may.
    """

    items: Float[Tensor, "memory *item"]
    labels: Int[Tensor, "_"] | None = None
    mask: Bool[Tensor, "_"] | None = None

    @staticmethod
    def of(images: Any, labels: Any = None, mask: Any = None) -> "Memory":
        """A memory of raw `images` [|M|, height, width] in [0, 1]."""
        items = as_images("memory items", images)
        return Memory(items, per_item("labels", labels, torch.int64), per_item("mask", mask, torch.bool))

    def __post_init__(self) -> None:
        if len(self) == 0:
            raise InputError("The memory is empty: give it at least one item.")
        for name, values in (("labels", self.labels), ("mask", self.mask)):
            if values is not None and len(values) != len(self):
                raise InputError(f"The memory has {len(self)} items but {len(values)} {name}: give one each.")
        if self.mask is not None and not bool(self.mask.any()):
            raise InputError("The mask leaves no memory item to address: keep at least one.")

    def __len__(self) -> int:
        return len(self.items)

    def read(self, a: Int[Tensor, "*reads"]) -> Float[Tensor, "*reads_and_item"]:
        """m_a for every address in `a`."""
        return self.items[a]

    def addresses(self) -> Int[Tensor, "addresses"]:
        """All addresses that may be read, in order."""
        if self.mask is None:
            return torch.arange(len(self), device=self.items.device)
        return self.mask.nonzero().squeeze(1)

    def keep(self, a: Int[Tensor, "kept"] | Bool[Tensor, "memory"]) -> "Memory":
        """The memory of only the items at `a`: a selection, or another order."""
        return Memory(
            self.items[a],
            None if self.labels is None else self.labels[a],
            None if self.mask is None else self.mask[a],
        )

    def showing(self, seen: Callable[[Tensor], Tensor]) -> "Memory":
        """The same addresses, with every item replaced by what `seen` makes of it."""
        return replace(self, items=seen(self.items))

    def join(self, other: "Memory") -> "Memory":
        """The items of both memories, those of `other` last."""
        if self.items.shape[1:] != other.items.shape[1:]:
            raise InputError(
                f"Memories of items {list(self.items.shape[1:])} and {list(other.items.shape[1:])} cannot be "
                "joined: resize one of them."
            )
        if (self.labels is None) != (other.labels is None):
            raise InputError("One memory has labels and the other has none: label both, or neither.")
        labels = None if self.labels is None or other.labels is None else (self.labels, other.labels)
        mask = None if self.mask is None and other.mask is None else (self.in_use(), other.in_use())
        return Memory(
            torch.cat((self.items, other.items)),
            None if labels is None else torch.cat(labels),
            None if mask is None else torch.cat(mask),
        )

    def in_use(self) -> Bool[Tensor, "memory"]:
        """The mask; all True if there is none."""
        return (
            torch.ones(len(self), dtype=torch.bool, device=self.items.device)
            if self.mask is None
            else self.mask
        )

    def to(self, target: Tensor) -> "Memory":
        """This memory with the type and on the device of `target`."""
        move = [None if t is None else t.to(target.device) for t in (self.labels, self.mask)]
        return replace(self, items=self.items.to(target), labels=move[0], mask=move[1])


@dataclass(frozen=True, eq=False)
class KeyedMemory:
    """M with k_a = h(m_a) of every item: what depends on the items alone, computed once and carried along.

    Every method of a model that reads a memory takes one in place of a raw `Memory`; `VMA.keyed` makes it. Keys
    belong to the weights that computed them.

    >>> model = vma.build_vma(vma.paper_mlp())
    >>> keyed = model.keyed(vma.Memory.of(torch.zeros(3, 28, 28)))
    >>> keyed.keys.shape, model.prior(keyed).perplexity()
    (torch.Size([3, 128]), tensor(3., ...))

    Attributes:
        memory: M.
        keys: k_a.
    """

    memory: Memory
    keys: Float[Tensor, "memory matching"]

    def __len__(self) -> int:
        return len(self.memory)

    @property
    def items(self) -> Float[Tensor, "memory *item"]:
        """m_a of every address."""
        return self.memory.items

    def keep(self, a: Int[Tensor, "kept"]) -> "KeyedMemory":
        """Only the items at `a`."""
        return KeyedMemory(self.memory.keep(a), self.keys[a]).by_coordinate()

    def join(self, other: "KeyedMemory") -> "KeyedMemory":
        """The items of both memories, those of `other` last."""
        joined = torch.cat((self.keys, other.keys))
        return KeyedMemory(self.memory.join(other.memory), joined).by_coordinate()

    def only(self, mask: Bool[Tensor, "memory"]) -> "KeyedMemory":
        """The same items and addresses, with only those in the mask readable."""
        return replace(self, memory=replace(self.memory, mask=mask))

    def by_coordinate(self) -> "KeyedMemory":
        """The same with keys stored coordinate by coordinate, so that one query reads a large memory in order."""
        return replace(self, keys=self.keys.T.contiguous().T)


@dataclass(frozen=True)
class PrecedingImages:
    """M of x_t is x_1 … x_{t−1}: what a model of sequences conditions on instead of a `Memory`.

    Attributes:
        length: T; the T targets of a sequence stand next to each other in the batch.
    """

    length: int

    def __post_init__(self) -> None:
        if self.length < 1:
            raise InputError(f"A sequence needs at least one image, not {self.length}.")


KINDS = {torch.int64: "whole numbers", torch.bool: "true or false"}


def per_item(name: str, values: Any, dtype: torch.dtype) -> Tensor | None:
    """Optional `values`, one per item, as a tensor."""
    if values is None:
        return None
    tensor = as_tensor(name, values)
    if tensor.ndim != 1:
        raise InputError(f"{name} must be a list with one value per memory item.")
    if not bool((tensor.to(dtype) == tensor).all()):
        raise InputError(f"{name} must be {KINDS[dtype]}, one per memory item.")
    return tensor.to(dtype)


class LearnedMemory(nn.Module):
    """M as a parameter: m_a ~ N(0, START²) at first, then moved by the gradient of the bound."""

    def __init__(self, items: int, shape: Sequence[int]) -> None:
        super().__init__()
        if items < 1:
            raise InputError(f"A learned memory needs at least one item, not {items}.")
        self.items = nn.Parameter(START * torch.randn(items, *shape))

    def forward(self) -> Memory:
        """The memory as it is now, through which gradients flow to the parameter."""
        return Memory(self.items)


def choose_memory(memory: Any, learned: LearnedMemory | None, shape: Sequence[int], like: Tensor) -> Memory:
    """The memory that a model uses: the given one, checked and with the type of `like`, or its learned one."""
    if learned is not None:
        if memory is not None:
            raise InputError("This model has a learned memory of its own: leave the memory out.")
        return learned()
    if memory is None:
        raise InputError("This model reads raw items: give it a memory, e.g. Memory.of(images).")
    if isinstance(memory, KeyedMemory):
        memory = memory.memory
    if not isinstance(memory, Memory):
        raise InputError(
            f"The memory must be a Memory, not a {type(memory).__name__}: use Memory.of(images)."
        )
    check_shape("memory items", memory.items, shape)
    check_values("memory items", memory.items)
    return memory.to(like)
