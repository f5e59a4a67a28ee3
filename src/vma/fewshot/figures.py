"""Pictures of what was imagined, and of where the model looked, as PNG; `vma.plotting` draws them."""

import numpy as np
import torch
from torch import Tensor

from vma.fewshot.explanation import Explanation
from vma.fewshot.image_memory import ImageMemory
from vma.fewshot.imagined import Imagined
from vma.fewshot.large_memory import LargeMemory
from vma.plotting import explained, imagined

AnyMemory = ImageMemory | LargeMemory


def imagined_png(memory: AnyMemory, drawn: Imagined, *, binary: bool = False) -> bytes:
    """What was imagined, one line for each memory item: its label, the item itself, and the samples from it.

    Args:
        memory: The memory.
        drawn: The result of `memory.imagine`.
        binary: Show binary images instead of the probability of ink.
    """
    shown = drawn.images if binary else drawn.shown
    items, numbers = drawn.items, None
    if isinstance(memory, LargeMemory):
        numbers, items = drawn.items.unique(return_inverse=True)
    named = named_items(memory, numbers)
    return imagined.imagined_png(named, items.tolist(), list(shown.cpu().numpy()))


def explained_png(memory: AnyMemory, found: Explanation) -> bytes:
    """The target and its reconstruction, q(a|x) over the memory, and the items with the largest q(a|x)."""
    numbers = None if found.looked_at is None else found.looked_at.tolist()
    places = {number: place for place, number in enumerate(numbers or range(len(found.q)))}
    shown = explained.Explained(
        target=found.target.cpu().numpy(),
        reconstruction=found.reconstruction.cpu().numpy(),
        label=found.label,
        share=found.probabilities[found.label],
        q=found.q.double().cpu().numpy(),
        top=[places[each.item] for each in found.top],
        log_p=found.log_p,
        kl_a=found.kl_a,
        kl_z=found.kl_z,
    )
    return explained.explained_png(named_items(memory, found.looked_at), shown)


def named_items(memory: AnyMemory, numbers: Tensor | None = None) -> imagined.NamedItems:
    """The items of a memory with their classes: all items, or those with these numbers."""
    if isinstance(memory, LargeMemory):
        some = np.empty(0, np.int64) if numbers is None else numbers.numpy()
        labels, names = memory.labels_at(some), memory.names_at(some)
        images = memory.searched.read(torch.from_numpy(some)).numpy()
        return imagined.NamedItems(images, names, [label is not None for label in labels], some.tolist())
    labelled = [label is not None for label in memory.labels]
    return imagined.NamedItems(memory.items.cpu().numpy(), memory.names, labelled)
