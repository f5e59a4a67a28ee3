"""What a trained model remembers, and what can be asked of it: imagine, vary, recognise, score, explain."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vma.checks import check_samples, generator_of
from vma.data.folder import FolderOptions
from vma.errors import InputError, unknown_name
from vma.fewshot.explanation import Explanation, explain
from vma.fewshot.images import OPTIONS, ink_for
from vma.fewshot.imagination import Imagined, any_directions, imagine, main_directions, vary
from vma.fewshot.labels import Labels, as_label, as_labels, as_number, as_numbers
from vma.fewshot.memory_file import StoredMemory, memory_bytes, write_memory
from vma.fewshot.novelty import Norm
from vma.fewshot.recognition import DEFAULT, Recognition, recognition, rule, shares
from vma.fewshot.scores import Score, score, usual
from vma.memory import KeyedMemory
from vma.model import VMA


@dataclass(frozen=True, eq=False)
class ImageMemory:
    """A memory of raw images, bound to a trained model.

    It is a value: growing, shrinking, merging and naming give a new one. Keys are computed once per item and
    carried along, so that all of these are cheap.

    Attributes:
        model: The model.
        keyed: The items with their keys.
        labels: A label for each item, or None where it has none.
        fingerprint: Of the model's weights.
        options: How images given later become ink.
    """

    model: VMA
    keyed: KeyedMemory
    labels: Labels
    fingerprint: str
    options: FolderOptions = OPTIONS
    norms: dict[tuple[int, int | None], Norm] = field(default_factory=dict, repr=False)
    directions: dict[int, Tensor] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.keyed)

    @property
    def items(self) -> Float[Tensor, "memory *image"]:
        """The images, as ink: 0 is empty, 1 is full."""
        return self.keyed.items

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of an image."""
        return self.items.shape[-2], self.items.shape[-1]

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels, each once, in the order in which they came."""
        return tuple(dict.fromkeys(label for label in self.labels if label is not None))

    @property
    def names(self) -> tuple[str, ...]:
        """The class of each item; one without a label is a class of its own, called `(item i)`."""
        return tuple(f"(item {i})" if label is None else label for i, label in enumerate(self.labels))

    # Growing, shrinking, naming

    def add(self, images: Any, labels: Any = None, *, options: FolderOptions | None = None) -> "ImageMemory":
        """This memory with `images` at its end; images and labels as for `TrainedModel.remember`."""
        ink = ink_for(self.model, images, options or self.options)
        more = ink.labels if labels is None else as_labels(labels, len(ink.images))
        return self.changed(self.keyed.join(self.model.remember(ink.images)), self.labels + more)

    def forget(self, items: int | Sequence[int]) -> "ImageMemory":
        """This memory without the items of these numbers; at least one has to stay."""
        gone = set(as_numbers(items, len(self)))
        kept = [i for i in range(len(self)) if i not in gone]
        if not kept:
            raise InputError("Forgetting every item would leave an empty memory: keep at least one.")
        return self.changed(
            self.keyed.keep(torch.tensor(kept, device=self.items.device)), tuple(self.labels[i] for i in kept)
        )

    def merge(self, other: "ImageMemory") -> "ImageMemory":
        """The items of both, those of `other` last."""
        if self.fingerprint != other.fingerprint:
            raise InputError("Memories of two different models cannot be merged: use one model for both.")
        return self.changed(self.keyed.join(other.keyed), self.labels + other.labels)

    def relabel(self, items: int | Sequence[int], label: str | int | None) -> "ImageMemory":
        """This memory with another label for the items of these numbers."""
        chosen, new = set(as_numbers(items, len(self))), as_label(label)
        labels = tuple(new if i in chosen else old for i, old in enumerate(self.labels))
        return self.changed(self.keyed, labels)

    def save(self, path: str | Path) -> None:
        """Write items, labels and keys to one file, which `TrainedModel.open_memory` reads."""
        write_memory(Path(path), self.stored())

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        return memory_bytes(self.stored())

    # Questions

    def imagine(
        self,
        n: int = 16,
        *,
        label: str | int | None = None,
        item: int | None = None,
        temperature: float = 1.0,
        seed: int | None = None,
    ) -> Imagined:
        """`n` new images: a ~ p(a), z ~ p(z|m_a), x ~ p(x|m_a,z).

        Args:
            n: How many.
            label: Only from items of this label.
            item: Only from the item of this number.
            temperature: Multiplies the standard deviation of p(z|m): 0 gives its mean, 1 the model's own variety.
                Where pixels know each other (`reading-order`) it also divides their log-odds.
            seed: The same seed gives the same images; None draws others each time.
        """
        return imagine(self.model, self.restricted(label, item), n, temperature, self.generator(seed))

    def vary(
        self, item: int, at: Sequence[tuple[float, float]], seed: int | None = None
    ) -> Float[Tensor, "points *image"]:
        """Ink at z = μ + σ (s d₁ + t d₂), with μ and σ those of p(z|m), for every (s, t) in `at`.

        Its probability where pixels are independent, and else every pixel's more probable value given those before.

        Args:
            item: The item m to vary.
            at: Where to look; (0, 0) is the mean, and values of 3 are far out.
            seed: None for the two directions in which the image changes most; a seed for two at random.
        """
        number = as_number(item, len(self))
        return vary(self.model, self.keyed, number, at, self.directions_of(number, seed))

    def recognise(
        self,
        images: Any,
        *,
        by: str = DEFAULT,
        samples: int = 8,
        top: int = 5,
        seed: int | None = 0,
        options: FolderOptions | None = None,
    ) -> list[Recognition]:
        """p(c|x) of every image: how probable each class is, and the items that decided.

        Args:
            images: As for `TrainedModel.remember`.
            by: `joined`: q(a|x) proposes a few items, and their likelihood counts too, weakly; its probabilities
                are the most reliable. `address`: the sum of q(a|x), at once. `proposals`: q(a|x) proposes and the
                likelihood decides, for a model that has not slept. `likelihood`: the sum of p(a) p(x|m_a) over
                every item, by Bayes' rule; slow, and too sure of itself.
            samples: Draws of z for each item whose likelihood is asked for.
            top: How many deciding items to name.
            seed: Of the draws.
            options: How images become ink; those of the memory by default.
        """
        check_samples(samples, 1, "Recognising")
        x = self.targets(images, options)
        found = shares(self.model, self.keyed, self.names, x, rule(by), samples, self.generator(seed))
        return [recognition(row, self.names, top) for row in found]

    def score(
        self, images: Any, *, samples: int = 64, seed: int | None = 0, options: FolderOptions | None = None
    ) -> list[Score]:
        """log p(x|M) of every image, and whether it is novel: of a class that memory does not hold.

        Its surprise, log p(x|M) / log p(x|{x}), and where it lies in the matching space are compared with
        those of the memory's own items, each given all the others (see `vma.fewshot.novelty`).

        Args:
            images: As for `TrainedModel.remember`.
            samples: K; more give a higher and steadier score.
            seed: Of the draws.
            options: How images become ink; those of the memory by default.
        """
        x = self.targets(images, options)
        return [score(self.model, self.keyed, each, self.norm(samples, seed), samples, seed) for each in x]

    def norm(self, samples: int = 64, seed: int | None = 0) -> Norm:
        """What is usual here: computed at the first question, and kept."""
        if (samples, seed) not in self.norms:
            self.norms[samples, seed] = usual(self.model, self.keyed, self.labels, samples, seed)
        return self.norms[samples, seed]

    def explain(
        self,
        image: Any,
        *,
        samples: int = 64,
        top: int = 5,
        seed: int | None = 0,
        options: FolderOptions | None = None,
    ) -> Explanation:
        """Where the model looks for one image: q(a|x), KL_a, KL_z, the top items and what it makes of the first.

        Args:
            image: One image, as for `TrainedModel.remember`.
            samples: K.
            top: How many items to name.
            seed: Of the draws.
            options: How the image becomes ink; those of the memory by default.
        """
        x = self.targets(image, options)
        if len(x) != 1:
            raise InputError(f"One image is explained at a time, not {len(x)}.")
        return explain(
            self.model, self.keyed, self.labels, self.names, x[0], samples, top, self.generator(seed)
        )

    def generator(self, seed: int | None) -> torch.Generator | None:
        """Randomness of that seed, where the memory is."""
        return generator_of(seed, self.items.device)

    def directions_of(self, item: int, seed: int | None) -> Float[Tensor, "2 latent"]:
        """The two directions in which an item is varied."""
        if (generator := self.generator(seed)) is not None:
            return any_directions(self.model, self.keyed, generator)
        if item not in self.directions:
            self.directions[item] = main_directions(self.model, self.keyed, item)
        return self.directions[item]

    def changed(self, keyed: KeyedMemory, labels: Labels) -> "ImageMemory":
        """The same with other items and labels; what was computed of the old ones is forgotten."""
        return replace(self, keyed=keyed, labels=labels, norms={}, directions={})

    def stored(self) -> StoredMemory:
        """What is written to a file."""
        return StoredMemory(self.items, self.labels, self.keyed.keys, self.fingerprint)

    def targets(self, images: Any, options: FolderOptions | None) -> Float[Tensor, "batch *image"]:
        """Images as the model sees them."""
        return ink_for(self.model, images, options or self.options).images.to(self.items)

    def restricted(self, label: str | int | None, item: int | None) -> KeyedMemory:
        """The memory of which only the items of a label, or a single one, can be read."""
        if label is None and item is None:
            return self.keyed
        if label is not None and item is not None:
            raise InputError("Imagine from a label or from an item, not from both: leave one out.")
        if item is not None:
            chosen = {as_number(item, len(self))}
        else:
            chosen = {i for i, each in enumerate(self.labels) if each == as_label(label)}
        if not chosen:
            raise unknown_name("label", str(label), self.classes or ("none, since no item has a label",))
        mask = [i in chosen for i in range(len(self))]
        return self.keyed.only(torch.tensor(mask, device=self.items.device))
