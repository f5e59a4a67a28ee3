"""A memory on disk, bound to a trained model: what can be asked of it is what can be asked of a small one."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from vma.checks import check_samples, generator_of
from vma.data.picture import FolderOptions
from vma.errors import InputError
from vma.fewshot.explanation import Explanation, explain
from vma.fewshot.images import OPTIONS, ink_for
from vma.fewshot.imagination import (
    any_directions,
    check_imagining,
    imagine_from,
    main_directions,
    vary,
)
from vma.fewshot.imagined import Imagined
from vma.fewshot.items import Item, as_label, as_labels, as_number, class_name
from vma.fewshot.lookup import SearchedLookUp, keyed_items, search_for
from vma.fewshot.novelty import Norm
from vma.fewshot.recognised import Recognition, Recognitions
from vma.fewshot.recognition import DEFAULT, decide, rule, shares
from vma.fewshot.scores import Score, score, usual_of_large
from vma.fewshot.sharpening import ITEMS, sharpness_of
from vma.index import Index
from vma.index.protocol import check_server
from vma.large.indexing import Progress, new_collection, open_index, save_index
from vma.large.manifest import Manifest
from vma.large.searched import CANDIDATES, SearchedItems
from vma.large.snapshot import Numbers, Snapshot, open_snapshot
from vma.large.writer import Writer, create
from vma.masses import by_mass
from vma.model import VMA
from vma.proposals import EPSILON
from vma.similarity import InnerProduct

Embedded = tuple[UInt8[Tensor, "some *image"], Float[Tensor, "some matching"]]


class LargeMemory:
    """A memory in a folder. It grows and shrinks in place, and each change is on disk when its method returns.

    An item keeps its number as long as it is there; a number is never given to another. q(a|x) is looked for
    among `candidates` items that the index finds, and a share `epsilon` of all reads goes anywhere, by p(a): what
    a search misses makes bounds less tight and never wrong.

    >>> memory = vma.load("omniglot-crisp").create_memory("M", index="exact")
    >>> memory.add("my-symbols")  # the numbers that the items have from now on
    range(0, 4)
    >>> memory.recognise("new.png")[0].label in memory.classes
    True
    >>> memory.forget(0)
    >>> len(memory)
    3

    Attributes:
        model: The model.
        fingerprint: Of the model's weights.
        folder: Where the memory is.
        options: How images given later become ink.
    """

    def __init__(
        self,
        model: VMA,
        fingerprint: str,
        folder: Path,
        options: FolderOptions = OPTIONS,
        *,
        index: str | None = None,
        candidates: int = CANDIDATES,
        epsilon: float = EPSILON,
        progress: Progress | None = None,
    ) -> None:
        self.model, self.fingerprint, self.folder, self.options = model, fingerprint, folder, options
        self.chosen, self.candidates, self.epsilon, self.progress = index, candidates, epsilon, progress
        self.norms: dict[tuple[int, int | None], Norm] = {}
        self.turn_to(open_snapshot(folder))
        self.check_model()

    def check_model(self) -> None:
        """Refuse keys that another model made."""
        of = self.snapshot.manifest
        if of.model != self.fingerprint:
            raise InputError(
                f"{self.folder} holds keys of another model ({of.model_name}): use that one, or make all keys "
                "anew with 'vma memory rekey'."
            )

    def turn_to(self, snapshot: Snapshot) -> None:
        """From now on this is the memory."""
        self.snapshot = snapshot
        self.norms.clear()
        for name in ("index", "searched", "of_a_class"):
            self.__dict__.pop(name, None)

    def __len__(self) -> int:
        return len(self.snapshot)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of an image."""
        return self.snapshot.manifest.shape[-2], self.snapshot.manifest.shape[-1]

    @property
    def classes(self) -> tuple[str, ...]:
        """All labels."""
        return tuple(self.snapshot.numbers)

    @cached_property
    def index(self) -> Index:
        """What finds items; opened at the first question."""
        return open_index(self.snapshot, self.chosen, self.progress)

    @cached_property
    def searched(self) -> SearchedItems:
        """The memory as the model reads it: `model.terms` and all that is made of it take this."""
        return SearchedItems.of(self.snapshot, self.index, self.candidates, self.epsilon)

    @cached_property
    def of_a_class(self) -> float:
        """The mean number of items of a class; an item without a label is a class of its own."""
        numbers = self.snapshot.labels[self.snapshot.alive()]
        return len(numbers) / (len(np.unique(numbers[numbers >= 0])) + int((numbers < 0).sum()))

    def labels_at(self, items: Int[np.ndarray, "some"]) -> tuple[str | None, ...]:
        """The label of each of some items."""
        return self.snapshot.texts(items)

    def names_at(self, items: Int[np.ndarray, "some"]) -> tuple[str, ...]:
        """The class of each of some items; one without a label is called `(item i)`."""
        pairs = zip(items.tolist(), self.labels_at(items), strict=True)
        return tuple(class_name(item, label) for item, label in pairs)

    def __getitem__(self, number: int) -> Item:
        """The item of a number."""
        place = self.snapshot.check(number)
        image = self.searched.read(torch.from_numpy(place))[0]
        return Item(number, image, self.labels_at(place)[0], self.snapshot.sources(place)[0] or None)

    def items_at(self, items: Any) -> Float[Tensor, "some *image"]:
        """The images of some items, as ink."""
        return self.searched.read(torch.from_numpy(self.snapshot.check(items)))

    # Growing, shrinking, naming

    def add(
        self,
        images: Any,
        labels: Any = None,
        *,
        options: FolderOptions | None = None,
        sources: Sequence[str] | None = None,
    ) -> range:
        """Remember `images` too, all of them or none, and say their numbers; as for `TrainedModel.remember`."""
        ink = ink_for(self.model, images, options or self.options)
        own = ink.labels if labels is None else as_labels(labels, len(ink.images))
        whence = tuple(each or "" for each in ink.sources) if sources is None else sources
        return self.keep(*self.embedded(ink.images), own, whence)

    @torch.no_grad()
    def embedded(self, ink: Float[Tensor, "some *image"]) -> Embedded:
        """Images as they are kept, and their keys."""
        levels = (ink * 255).round().to(torch.uint8)
        return levels.cpu(), self.model.remember(ink).keys.float().cpu()

    def keep(
        self,
        levels: UInt8[Tensor, "some *image"],
        keys: Float[Tensor, "some matching"],
        labels: Sequence[str | None],
        sources: Sequence[str],
    ) -> range:
        """Remember what was embedded, and say the numbers."""
        with Writer(self.folder) as writer:
            scores = scores_of(self.model, keys.to(next(self.model.parameters()).device))
            numbers = writer.add(levels.numpy(), keys.numpy(), scores, labels, sources)
        self.go_on(writer.snapshot, numbers)
        return numbers

    def forget(self, items: Numbers) -> None:
        """Forget the items of these numbers; at least one has to stay."""
        gone = self.snapshot.check(items)
        with Writer(self.folder) as writer:
            writer.forget(gone)
        self.go_on(writer.snapshot, gone=gone)

    def relabel(self, items: Numbers, label: str | int | None) -> None:
        """Give the items of these numbers another label."""
        with Writer(self.folder) as writer:
            writer.relabel(items, as_label(label))
        self.turn_to(writer.snapshot)

    def go_on(self, snapshot: Snapshot, added: range = range(0), gone: np.ndarray | None = None) -> None:
        """The memory after a change, with the index that there was; one that fails now is opened anew later."""
        index, last = self.__dict__.get("index"), self.snapshot.rows
        self.turn_to(snapshot)
        if index is None or last != (added.start if len(added) else snapshot.rows):
            return
        if gone is not None:
            index.delete(gone)
        if len(added):
            addresses = np.array(added, np.int64)
            index.add(addresses, snapshot.keys[addresses], snapshot.labels[addresses].astype(np.int64))
        self.__dict__["index"] = index

    def save_index(self) -> None:
        """Keep the index on disk, so that the next one who opens this memory need not make it."""
        with Writer(self.folder) as writer:
            if writer.manifest != self.snapshot.manifest:
                self.turn_to(writer.snapshot)
            save_index(self.snapshot, self.index, self.chosen)

    def sharpen(self, items: int = ITEMS, seed: int | None = 0) -> float:
        """Fit β of the proposal to this memory, and keep it: bounds of as many reads become tighter.

        So many items are targets, each given all the others. Which items are found, and in which order, stays.
        """
        with Writer(self.folder) as writer:
            self.go_on(writer.snapshot, range(0))
            sharpness = sharpness_of(self.model, self.searched, items, seed)
            writer.commit(sharpness=sharpness)
        self.go_on(writer.snapshot, range(0))
        return sharpness

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
        """`n` new images: a ~ p(a), z ~ p(z|m_a), x ~ p(x|m_a,z); as `ImageMemory.imagine`."""
        check_imagining(n, temperature)
        generator = self.generator(seed)
        if label is not None and item is not None:
            raise InputError("Imagine from a label or from an item, not from both: leave one out.")
        if item is not None:
            items = torch.from_numpy(self.snapshot.check(item)).expand(n)
        elif label is not None:
            items = self.of_label(str(as_label(label)), n, generator)
        else:
            items = self.snapshot.prior.sample(n, generator)
        return imagine_from(self.model, self.searched, items, temperature, generator, self.__getitem__)

    def of_label(self, label: str, n: int, generator: torch.Generator | None) -> Int[Tensor, "samples"]:
        """`n` times a ~ p(a) among the items of a label."""
        there = self.snapshot.of_label(label)
        uniform = torch.rand(n, dtype=torch.float64, generator=generator).numpy()
        return torch.from_numpy(there[by_mass(self.snapshot.prior.mass(there), uniform)])

    def vary(
        self, item: int, at: Sequence[tuple[float, float]], seed: int | None = None
    ) -> Float[Tensor, "points *image"]:
        """One item along two directions; as `ImageMemory.vary`."""
        number = as_number(item, self.snapshot.rows)
        keyed = keyed_items(self.model, self.searched, self.snapshot.check(number))
        generator = self.generator(seed)
        if generator is None:
            return vary(self.model, keyed, 0, at, main_directions(self.model, keyed, 0))
        return vary(self.model, keyed, 0, at, any_directions(self.model, keyed, generator))

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
        """p(c|x) of every image among the classes of the items that a search finds; as `ImageMemory.recognise`.

        `novelty` is not known here: `score` says it.
        """
        check_samples(samples, 1, "Recognising")
        chosen, generator, answers = rule(by), self.generator(seed), Recognitions()
        ink = ink_for(self.model, images, options or self.options)
        for look in self.looks(ink, options):
            names = self.names_at(look.items)
            share = shares(look, names, chosen, samples, generator, self.of_a_class)
            made = decide(share[0], names, top)
            items = tuple((int(look.items[i]), value) for i, value in made.items)
            deciding, source = tuple(self[i] for i, _ in items), ink.names[len(answers)]
            answers.append(Recognition(
                made.label, made.probabilities, items, look.x[0], source, deciding,
                reason="of a memory on disk, 'score' says what is new",
            ))  # fmt: skip
        return answers

    def score(
        self, images: Any, *, samples: int = 64, seed: int | None = 0, options: FolderOptions | None = None
    ) -> list[Score]:
        """log p(x|M) of every image, and whether it is novel; as `ImageMemory.score`."""
        looks = self.looks(images, options)
        return [score(look, self.norm(samples, seed), samples, seed) for look in looks]

    def norm(self, samples: int = 64, seed: int | None = 0) -> Norm:
        """What is usual here: computed at the first question, and kept."""
        if (samples, seed) not in self.norms:
            self.norms[samples, seed] = usual_of_large(self.model, self.searched, samples, seed)
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
        """Where the model looks for one image, among the items that a search finds; as `ImageMemory.explain`."""
        look, *others = self.looks(image, options)
        if others:
            raise InputError(f"One image is explained at a time, not {1 + len(others)}.")
        said = explain(
            look,
            self.names_at(look.items),
            lambda place: self[int(look.items[place])],
            samples,
            top,
            self.generator(seed),
        )
        return replace(said, looked_at=torch.from_numpy(look.items))

    def looks(self, images: Any, options: FolderOptions | None) -> list[SearchedLookUp]:
        """Every image, looked up."""
        return [search_for(self.model, self.searched, x) for x in self.targets(images, options).split(1)]

    def generator(self, seed: int | None) -> torch.Generator | None:
        """Randomness of that seed."""
        return generator_of(seed, torch.device("cpu"))

    def targets(self, images: Any, options: FolderOptions | None) -> Float[Tensor, "batch *image"]:
        """Images as the model sees them."""
        return ink_for(self.model, images, options or self.options).images.to(next(self.model.parameters()))


def ceiling_of(model: VMA) -> float:
    """The most that s_a = S(m_a, e^p) can be: ‖e^p‖ for keys of length 1; 0 where nothing is known."""
    query, similarity = model.addressing.prior_query, model.addressing.similarity
    if query is None or not isinstance(similarity, InnerProduct) or not similarity.normalize_keys:
        return 0.0
    return 1.0 if similarity.normalize_queries else float(query.detach().double().norm())


@torch.no_grad()
def scores_of(model: VMA, keys: Float[Tensor, "items matching"]) -> Float[np.ndarray, "items"]:
    """s_a = S(m_a, e^p) of every item, or 0 for a flat p(a)."""
    query = model.addressing.prior_query
    if query is None:
        return np.zeros(len(keys))
    return model.addressing.similarity.scores(keys.double(), query.double()).cpu().numpy()


def create_memory(
    model: VMA, name: str, fingerprint: str, folder: Path, index: str = "auto", server: str = ""
) -> None:
    """An empty memory on disk for the keys of a model."""
    if not isinstance(model.addressing.similarity, InnerProduct):
        raise InputError("Only similarities that are inner products of keys and queries can be searched by.")
    create(folder, Manifest(
        model=fingerprint, model_name=name, shape=tuple(model.image_shape), matching=model.config.matching,
        ceiling=ceiling_of(model), index=index, server=check_server(server), collection=new_collection(index),
    ))  # fmt: skip
