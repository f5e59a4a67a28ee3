"""Pictures of what was imagined, and of what the model looked at, as PNG: their arrays go to `vma.plotting`."""

from vma.fewshot.explanation import Explanation
from vma.fewshot.image_memory import ImageMemory
from vma.fewshot.imagination import Imagined
from vma.plotting import explained, imagined


def imagined_png(memory: ImageMemory, drawn: Imagined, *, binary: bool = False) -> bytes:
    """What was imagined, a line for each memory item: its label, the item itself, and the samples from it.

    Args:
        memory: The memory.
        drawn: What `memory.imagine` gave.
        binary: Show binary images instead of the probability of ink.
    """
    shown = drawn.images if binary else drawn.shown
    return imagined.imagined_png(named_items(memory), drawn.items.tolist(), list(shown.cpu().numpy()))


def explained_png(memory: ImageMemory, found: Explanation) -> bytes:
    """The target and what the model makes of it, q(a|x) over the memory, and the items it looked at most."""
    shown = explained.Explained(
        target=found.target.cpu().numpy(),
        reconstruction=found.reconstruction.cpu().numpy(),
        label=found.label,
        share=found.probabilities[found.label],
        q=found.q.double().cpu().numpy(),
        top=[each.item for each in found.top],
        log_p=found.log_p,
        kl_a=found.kl_a,
        kl_z=found.kl_z,
    )
    return explained.explained_png(named_items(memory), shown)


def named_items(memory: ImageMemory) -> imagined.NamedItems:
    """The items of a memory, with their classes."""
    labelled = [label is not None for label in memory.labels]
    return imagined.NamedItems(memory.items.cpu().numpy(), memory.names, labelled)
