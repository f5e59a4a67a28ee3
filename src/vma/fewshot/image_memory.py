"""What a trained model remembers, and what can be asked of it: imagine, vary, recognise, score, explain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import torch
from jaxtyping import Float
from torch import Tensor

from vma.checks import check_samples, generator_of, is_whole
from vma.data.picture import FolderOptions
from vma.errors import InputError, unknown_name
from vma.fewshot.exhibits import Card, Exhibit, Row, Showable
from vma.fewshot.explanation import Explanation, explain
from vma.fewshot.glance import novel, usual_looks
from vma.fewshot.images import OPTIONS, Ink, ink_for
from vma.fewshot.imagination import any_directions, imagine, main_directions, vary
from vma.fewshot.imagined import Imagined, joined
from vma.fewshot.items import (
    Item,
    Labels,
    Sources,
    as_label,
    as_labels,
    as_number,
    as_numbers,
    class_name,
    counted,
    listed,
)
from vma.fewshot.lookup import LookUp, look_up
from vma.fewshot.memory_file import StoredMemory, memory_bytes, write_memory
from vma.fewshot.novelty import Norm
from vma.fewshot.recognised import Recognition, Recognitions
from vma.fewshot.recognition import DEFAULT, decide, rule, shares
from vma.fewshot.scores import Score, score, usual
from vma.memory import KeyedMemory
from vma.model import VMA


@dataclass(frozen=True, eq=False, repr=False)
class ImageMemory(Showable):
    """A memory of raw images, bound to a trained model.

    It is a value: growing, shrinking, merging and naming return a new one. Keys are computed once per item and
    kept, so all of these are cheap. `memory[0]` is its first item, `memory[:5]` a smaller memory.

    >>> memory = vma.load("omniglot-crisp").remember("my-symbols")
    >>> memory
    ImageMemory(4 items of 2 classes: ga, ka; 26×26)
    >>> memory.imagine(3, label="ka").images.shape
    torch.Size([3, 26, 26])
    >>> memory.recognise("new.png")[0].label in memory.classes
    True
    >>> memory.score("new.png")[0].log_p < 0
    True
    >>> smaller = memory.forget(0)
    >>> len(memory), len(smaller)
    (4, 3)

    Attributes:
        model: The model.
        keyed: The items with their keys.
        labels: A label for each item; None for an item without one.
        fingerprint: A hash of the model's weights.
        options: How images given later become ink.
        sources: The file that each item came from, or None.
    """

    model: VMA
    keyed: KeyedMemory
    labels: Labels
    fingerprint: str
    options: FolderOptions = OPTIONS
    sources: Sources = field(kw_only=True)
    norms: dict[tuple[int, int | None], Norm] = field(default_factory=dict, repr=False)
    directions: dict[int, Tensor] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.keyed)

    @overload
    def __getitem__(self, number: int) -> Item: ...

    @overload
    def __getitem__(self, number: slice) -> "ImageMemory": ...

    def __getitem__(self, number: Any) -> "Item | ImageMemory":  # also whole numbers of NumPy and torch
        if isinstance(number, slice):
            return self.keep([*range(len(self))[number]])
        if not is_whole(number) or not -len(self) <= number < len(self):
            raise IndexError(f"The memory has items 0 to {len(self) - 1}, and none of number {number!r}.")
        place = int(number) % len(self)
        return Item(place, self.items[place], self.labels[place], self.sources[place])

    def __iter__(self) -> Iterator[Item]:
        return (self[i] for i in range(len(self)))

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
        """The class of each item; an item without a label is its own class, called `(item i)`."""
        return tuple(class_name(i, label) for i, label in enumerate(self.labels))

    # Growing, shrinking, naming

    def add(self, images: Any, labels: Any = None, *, options: FolderOptions | None = None) -> "ImageMemory":
        """This memory with `images` at its end; images and labels are those of `TrainedModel.remember`."""
        ink = ink_for(self.model, images, options or self.options)
        more = ink.labels if labels is None else as_labels(labels, len(ink.images))
        keyed = self.keyed.join(self.model.remember(ink.images))
        return self.changed(keyed, self.labels + more, self.sources + (ink.sources or (None,) * len(more)))

    def forget(self, items: int | Sequence[int]) -> "ImageMemory":
        """This memory without the items of these numbers; at least one item has to stay."""
        gone = set(as_numbers(items, len(self)))
        kept = [i for i in range(len(self)) if i not in gone]
        if not kept:
            raise InputError("Forgetting every item would leave an empty memory: keep at least one.")
        return self.keep(kept)

    def keep(self, items: int | Sequence[int]) -> "ImageMemory":
        """The items of these numbers, in this order."""
        kept = as_numbers(items, len(self))
        labels, sources = (tuple(words[i] for i in kept) for words in (self.labels, self.sources))
        return self.changed(self.keyed.keep(torch.tensor(kept, device=self.items.device)), labels, sources)

    def merge(self, other: "ImageMemory") -> "ImageMemory":
        """The items of both memories, those of `other` last."""
        if self.fingerprint != other.fingerprint:
            raise InputError("Memories of two different models cannot be merged: use one model for both.")
        return self.changed(
            self.keyed.join(other.keyed), self.labels + other.labels, self.sources + other.sources
        )

    def relabel(self, items: int | Sequence[int], label: str | int | None) -> "ImageMemory":
        """This memory with another label for the items of these numbers."""
        chosen, new = set(as_numbers(items, len(self))), as_label(label)
        labels = tuple(new if i in chosen else old for i, old in enumerate(self.labels))
        return self.changed(self.keyed, labels, self.sources)

    def save(self, path: str | Path) -> None:
        """Write items, labels, sources and keys to one file, which `TrainedModel.open_memory` reads."""
        write_memory(Path(path), self.stored())

    def to_bytes(self) -> bytes:
        """The bytes that `save` writes."""
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
                Where pixels depend on each other (`reading-order`), it also divides their log-odds.
            seed: The same seed gives the same images; None gives others each time.
        """
        keyed, generator = self.restricted(label, item), self.generator(seed)
        return imagine(self.model, keyed, n, temperature, generator, self.__getitem__)

    def imagine_each(self, n: int = 50, *, temperature: float = 1.0, seed: int | None = None) -> Imagined:
        """`n` new images of every class, one class after another: a data set, which the result's `save` writes.

        Args:
            n: How many of each class.
            temperature: As for `imagine`.
            seed: The same seed gives the same images; None draws others each time.
        """
        generator, names = self.generator(seed), self.names
        readable = [self.only([each == name for each in names]) for name in dict.fromkeys(names)]
        return joined(
            [imagine(self.model, keyed, n, temperature, generator, self.__getitem__) for keyed in readable]
        )

    def vary(
        self, item: int, at: Sequence[tuple[float, float]], seed: int | None = None
    ) -> Float[Tensor, "points *image"]:
        """Ink at z = μ + σ (s d₁ + t d₂), with μ and σ those of p(z|m), for every (s, t) in `at`.

        For independent pixels it is the probability of ink, otherwise a typical drawing.

        Args:
            item: The item m to vary.
            at: The points to show; (0, 0) is the mean, and values of 3 are far out.
            seed: None for the two directions in which the image changes most; a seed for two random ones.
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
        novelty: bool = True,
        options: FolderOptions | None = None,
    ) -> Recognitions:
        """p(c|x) of every image: how probable each class is, the items that decided, and whether it is new.

        Args:
            images: As for `TrainedModel.remember`.
            by: `joined`: q(a|x) proposes a few items, whose likelihood also counts, weakly; its probabilities are
                the most reliable. `address`: the sum of q(a|x); immediate. `proposals`: q(a|x) proposes and the
                likelihood decides, for a model that has not slept. `likelihood`: the sum of p(a) p(x|m_a) over all
                items, by Bayes' rule; slow and overconfident.
            samples: Draws of z for each item whose likelihood is computed.
            top: Number of deciding items to name.
            seed: Seed of the draws.
            novelty: Also say whether an image is of none of the classes, judged by where q(a|x) looks.
            options: How images become ink; by default as in the memory.
        """
        check_samples(samples, 1, "Recognising")
        ink = self.ink(images, options)
        look = look_up(self.model, self.keyed, ink.images)
        found = shares(look, self.names, rule(by), samples, self.generator(seed))
        unusual = novel(look, self.looks) if novelty else [None] * len(ink)
        reason = self.looks.reason if novelty else ""
        rows = zip(found, ink.images, ink.names, unusual, strict=True)
        return Recognitions(self.recognition(*row, reason, top) for row in rows)

    def recognition(
        self,
        share: Float[Tensor, "memory"],
        x: Float[Tensor, "*image"],
        source: str,
        unusual: bool | None,
        reason: str,
        top: int,
    ) -> Recognition:
        """The class that one image was taken for."""
        made = decide(share, self.names, top)
        chosen = tuple(self[i] for i, _ in made.items)
        return Recognition(made.label, made.probabilities, made.items, x, source, chosen, unusual, reason)

    @cached_property
    def looks(self) -> Norm:
        """Where q(a|x) looks for the memory's own items; computed at the first question, and kept."""
        return usual_looks(self.model, self.keyed, self.labels)

    def score(
        self, images: Any, *, samples: int = 64, seed: int | None = 0, options: FolderOptions | None = None
    ) -> list[Score]:
        """log p(x|M) of every image, and whether it is novel, that is, of a class that is not in memory.

        Its surprise, log p(x|M) / log p(x|{x}), and where it lies in the matching space are compared with
        those of the memory's own items, each given all the others (see `vma.fewshot.novelty`).

        Args:
            images: As for `TrainedModel.remember`.
            samples: K; a larger one gives a higher and steadier score.
            seed: Seed of the draws.
            options: How images become ink; by default as in the memory.
        """
        x = self.targets(images, options)
        looks = [look_up(self.model, self.keyed, each) for each in x.split(1)]
        return [score(look, self.norm(samples, seed), samples, seed) for look in looks]

    def norm(self, samples: int = 64, seed: int | None = 0) -> Norm:
        """What is usual in this memory; computed at the first question, and kept."""
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
        """Where the model looks for one image: q(a|x), KL_a, KL_z, the top items, and what it draws from the first.

        Args:
            image: One image, as for `TrainedModel.remember`.
            samples: K.
            top: Number of items to name.
            seed: Seed of the draws.
            options: How the image becomes ink; by default as in the memory.
        """
        look = self.look_up(image, options)
        if len(look.x) != 1:
            raise InputError(f"One image is explained at a time, not {len(look.x)}.")
        return explain(look, self.names, self.__getitem__, samples, top, self.generator(seed))

    def look_up(self, images: Any, options: FolderOptions | None = None) -> LookUp:
        """What the matching networks say about images, given as for `TrainedModel.remember`."""
        return look_up(self.model, self.keyed, self.targets(images, options))

    # How it looks

    def exhibit(self) -> Exhibit:
        """A row for each class."""
        cards: dict[str, list[Card]] = {}
        for item in self:
            cards.setdefault(item.name, []).append(item.card(""))
        return Exhibit(str(self), tuple(Row(name, tuple(each)) for name, each in cards.items()))

    def __repr__(self) -> str:
        size = "×".join(map(str, self.items.shape[1:]))
        classes = counted(len(self.classes), "class", "classes")
        of = f" of {classes}: {listed(self.classes)}" if self.classes else " without labels"
        return f"ImageMemory({counted(len(self), 'item')}{of}; {size})"

    # For the questions

    def generator(self, seed: int | None) -> torch.Generator | None:
        """A generator with that seed, on the memory's device."""
        return generator_of(seed, self.items.device)

    def directions_of(self, item: int, seed: int | None) -> Float[Tensor, "2 latent"]:
        """The two directions in which an item is varied."""
        if (generator := self.generator(seed)) is not None:
            return any_directions(self.model, self.keyed, generator)
        if item not in self.directions:
            self.directions[item] = main_directions(self.model, self.keyed, item)
        return self.directions[item]

    def changed(self, keyed: KeyedMemory, labels: Labels, sources: Sources) -> "ImageMemory":
        """A memory of other items with the same model and options; nothing computed for the old items is kept."""
        return replace(self, keyed=keyed, labels=labels, sources=sources, norms={}, directions={})

    def stored(self) -> StoredMemory:
        """The content of a memory's file."""
        return StoredMemory(self.items, self.labels, self.sources, self.keyed.keys, self.fingerprint)

    def targets(self, images: Any, options: FolderOptions | None) -> Float[Tensor, "batch *image"]:
        """Images as the model sees them."""
        return self.ink(images, options).images

    def ink(self, images: Any, options: FolderOptions | None) -> Ink:
        """Images as the model sees them, with their names."""
        ink = ink_for(self.model, images, options or self.options)
        return replace(ink, images=ink.images.to(self.items))

    def restricted(self, label: str | int | None, item: int | None) -> KeyedMemory:
        """The memory with only the items of a label, or a single item, readable."""
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
        return self.only([i in chosen for i in range(len(self))])

    def only(self, mask: list[bool]) -> KeyedMemory:
        """The memory with only some items readable."""
        return self.keyed.only(torch.tensor(mask, device=self.items.device))
