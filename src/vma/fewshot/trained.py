"""A trained model, ready to remember: from a run's folder, or from an exported file."""

from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from vma.config import ModelConfig
from vma.data.picture import FolderOptions
from vma.errors import InputError
from vma.fewshot.image_memory import ImageMemory
from vma.fewshot.images import ink_for, options_for
from vma.fewshot.labels import as_labels
from vma.fewshot.large_memory import LargeMemory, create_memory
from vma.fewshot.memory_file import read_memory
from vma.files import at_home
from vma.hub import find_pretrained, readme_of, write_pretrained
from vma.large import is_large
from vma.memory import KeyedMemory, Memory
from vma.model import VMA
from vma.pretrained import Card, card_of, pretrained_names
from vma.storage import identity, load_model, model_file


@dataclass(frozen=True, eq=False, repr=False)
class TrainedModel:
    """A model with its weights fixed.

    Attributes:
        model: The model itself.
        name: What to call it.
        fingerprint: Its `identity`, which changes with any weight: keys of one model are of no use to another.
    """

    model: VMA
    name: str
    fingerprint: str

    def __repr__(self) -> str:
        count = sum(each.numel() for each in self.model.parameters())
        return f"TrainedModel({self.name}: {self.size[0]}×{self.size[1]}, {count:,} parameters)"

    @property
    def config(self) -> ModelConfig:
        """The model in numbers and names."""
        return self.model.config

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of its images."""
        return self.config.height, self.config.width

    def remember(
        self, images: Any, labels: Any = None, *, options: FolderOptions | None = None
    ) -> ImageMemory:
        """A memory of `images`.

        Args:
            images: Arrays, tensors, PIL images, paths, or a list of these; a folder of `class/name.png` gives
                labels too. Of any size; normalised as `options` say.
            labels: A label for each image, of any kind that can be written as text, or one for all; None where
                an image has none.
            options: How images become ink (see `FolderOptions`), what suits the model by default; they are kept for
                everything asked later.
        """
        ink = ink_for(self.model, images, options)
        own = ink.labels if labels is None else as_labels(labels, len(ink.images))
        keyed = self.model.remember(ink.images)
        kept = options or options_for(self.config)
        return ImageMemory(
            self.model, keyed, own, self.fingerprint, kept, sources=ink.sources or (None,) * len(own)
        )

    def open_memory(
        self, path: str | Path, *, options: FolderOptions | None = None
    ) -> ImageMemory | LargeMemory:
        """The memory in the file `path`, with this model or with another, or in a folder that `vma memory` made.

        A file is what `ImageMemory.save` wrote, and is read whole; of a folder, no more is read than is needed.
        """
        place = at_home(Path(path))
        return self.large_memory(place, options) if is_large(place) else self.small_memory(place, options)

    def create_memory(
        self,
        folder: str | Path,
        *,
        index: str = "auto",
        server: str = "",
        options: FolderOptions | None = None,
    ) -> LargeMemory:
        """An empty memory on disk, in a new folder, for as many items as there is room for.

        Args:
            folder: Where to keep it.
            index: `exact`, `faiss`, or one of `vma.parts.INDEXES`; `auto` goes by their number.
            server: Address of the engine, for an index that has one.
            options: How images become ink.
        """
        place = at_home(Path(folder))
        create_memory(self.model, self.name, self.fingerprint, place, index, server)
        return self.large_memory(place, options)

    def large_memory(self, folder: Path, options: FolderOptions | None) -> LargeMemory:
        """The memory in a folder."""
        return LargeMemory(self.model, self.fingerprint, folder, options or options_for(self.config))

    def small_memory(self, path: Path, options: FolderOptions | None) -> ImageMemory:
        """The memory in a file."""
        stored = read_memory(path, self.config.image_shape)
        like = next(self.model.parameters())
        keys = stored.keys_of(self.fingerprint, self.config.matching)
        if keys is None:
            keyed = self.model.remember(stored.items)
        else:
            keyed = KeyedMemory(Memory(stored.items.to(like)), keys.to(like)).by_coordinate()
        kept = options or options_for(self.config)
        return ImageMemory(self.model, keyed, stored.labels, self.fingerprint, kept, sources=stored.sources)

    def save_pretrained(
        self, folder: str | Path, *, card: str | None = None, half: bool = False, overwrite: bool = False
    ) -> None:
        """Write weights, configuration and card into a folder as the Hugging Face hub has them.

        Args:
            folder: Where; `vma.from_pretrained` and `vma.load` read it.
            card: The text of README.md; by default what is known, with a list of what is left to tell.
            half: Write the weights in half precision, for half the size.
            overwrite: Replace the model in the folder, if there is one.
        """
        path = at_home(Path(folder))
        text = card or readme_of(path.name, self.model, self.card)
        model = deepcopy(self.model).half() if half else self.model
        write_pretrained(model, path, text, overwrite=overwrite)

    @property
    def card(self) -> Card | None:
        """The card of this model, if it is one in the box."""
        if self.name not in pretrained_names() or load(self.name).fingerprint != self.fingerprint:
            return None
        return card_of(self.name)


def load(path: str | Path) -> TrainedModel:
    """The trained model in a run's folder, in that of a quickstart, in an exported file, or in the box.

    >>> vma.load("omniglot").size
    (26, 26)
    >>> vma.save_model(vma.build_vma(vma.ModelConfig(maps=8)), "characters.safetensors")
    >>> memory = vma.load("characters.safetensors").remember(np.eye(26), labels="stroke")
    >>> memory.imagine(4, seed=0).images.shape, memory.recognise(np.eye(26))[0].label
    (torch.Size([4, 26, 26]), 'stroke')
    """
    file = model_file(Path(path))
    model = load_model(file)
    if not isinstance(model, VMA) or model.config.learned_items:
        kind = "vma model with a learned memory" if isinstance(model, VMA) else f"{model.config.model} model"
        raise InputError(
            f"{path} holds a {kind}, which cannot remember images: choose a model of kind vma with raw memory."
        )
    if next(model.parameters()).dtype in (torch.float16, torch.bfloat16):  # for the disk alone
        model = model.float()
    return TrainedModel(model.eval().requires_grad_(False), name_of(file), identity(model))


def from_pretrained(source: str | Path, *, revision: str | None = None) -> TrainedModel:
    """The model in a folder on the Hugging Face hub's layout, in the box, or in a repository of the hub.

    >>> vma.load("omniglot").save_pretrained("my-model", half=True)
    >>> vma.from_pretrained("my-model").fingerprint == vma.from_pretrained("omniglot").fingerprint
    True

    Args:
        source: A folder, the name of a model in the box, or OWNER/NAME of a repository, which is downloaded unless
            it is in the hub's cache already.
        revision: Of the repository: a branch, a tag or a commit; by default its newest state.
    """
    found = load(find_pretrained(source, revision))
    return replace(found, name=Path(source).name or found.name)


def name_of(file: Path) -> str:
    """The run's name, or the file's."""
    if file.name != "model.safetensors":
        return file.stem
    folder = file.resolve().parent
    return folder.parent.name if folder.name == "vma" else folder.name
