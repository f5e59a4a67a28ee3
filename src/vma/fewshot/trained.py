"""A trained model that can remember images: from a run's folder, a file, the box, or the hub."""

from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vma.config import ModelConfig
from vma.data.picture import FolderOptions
from vma.errors import InputError
from vma.fewshot.image_memory import ImageMemory
from vma.fewshot.images import ink_for, options_for
from vma.fewshot.items import as_labels
from vma.fewshot.large_memory import LargeMemory, create_memory
from vma.fewshot.memory_file import read_memory
from vma.files import at_home
from vma.hub import find_pretrained, readme_of, write_pretrained
from vma.large import is_large
from vma.memory import KeyedMemory, Memory
from vma.model import VMA
from vma.pretrained import Card, card_of, pretrained_names
from vma.storage import identity, load_for_use, model_file


@dataclass(frozen=True, eq=False, repr=False)
class TrainedModel:
    """A model whose weights are fixed.

    >>> model = vma.load("omniglot-crisp")
    >>> model.size
    (26, 26)
    >>> memory = model.remember("my-symbols")  # a folder of class/name.png
    >>> memory.save("symbols.safetensors")
    >>> model.open_memory("symbols.safetensors").classes == memory.classes
    True

    Attributes:
        model: The model itself.
        name: Its name in messages.
        fingerprint: Its `identity`, which changes with any weight: a model cannot use the keys of another one.
    """

    model: VMA
    name: str
    fingerprint: str

    def __repr__(self) -> str:
        count = sum(each.numel() for each in self.model.parameters())
        return f"TrainedModel({self.name}: {self.size[0]}×{self.size[1]}, {count:,} parameters)"

    @property
    def config(self) -> ModelConfig:
        """The configuration of the model."""
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
            images: Arrays, tensors, PIL images, paths, or a list of these, of any size; a folder of
                `class/name.png` gives labels too.
            labels: A label for each image, of any kind that can be written as text, or one label for all; None for
                an image without one.
            options: How images become ink (see `FolderOptions`), by default as suits the model; they also apply to
                all images in later questions.
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
        """The memory in the file `path`, written with this or another model, or in a folder that `vma memory` made.

        A file written by `ImageMemory.save` is read whole; of a folder, only what is needed is read.
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
        """An empty memory on disk, in a new folder, for as many items as the disk has room for.

        Args:
            folder: Where to keep it.
            index: `exact`, `faiss`, or another name in `vma.parts.INDEXES`; `auto` decides by the number of items.
            server: Address of the search engine, for an index that needs one.
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
        """Write weights, configuration and card into a folder with the layout of the Hugging Face hub.

        Args:
            folder: The folder, which `vma.from_pretrained` and `vma.load` read.
            card: The text of README.md; by default what is known of the model, with headings left to fill in.
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
    """The trained model in the folder of a run or quickstart, in an exported file, or in the box.

    >>> vma.load("omniglot").size
    (26, 26)
    >>> vma.save_model(vma.build_vma(vma.ModelConfig(maps=8)), "characters.safetensors")
    >>> memory = vma.load("characters.safetensors").remember(np.eye(26), labels="stroke")
    >>> memory.imagine(4, seed=0).images.shape, memory.recognise(np.eye(26))[0].label
    (torch.Size([4, 26, 26]), 'stroke')
    """
    file = model_file(Path(path))
    model = load_for_use(file)
    if not isinstance(model, VMA) or model.config.learned_items:
        kind = "vma model with a learned memory" if isinstance(model, VMA) else f"{model.config.model} model"
        raise InputError(
            f"{path} holds a {kind}, which cannot remember images: choose a model of kind vma with raw memory."
        )
    return TrainedModel(model.eval().requires_grad_(False), name_of(file), identity(model))


def from_pretrained(source: str | Path, *, revision: str | None = None) -> TrainedModel:
    """The model in a folder with the hub's layout, in the box, or in a repository of the Hugging Face hub.

    >>> vma.load("omniglot").save_pretrained("my-model", half=True)
    >>> vma.from_pretrained("my-model").fingerprint == vma.from_pretrained("omniglot").fingerprint
    True

    Args:
        source: A folder, the name of a model in the box, or OWNER/NAME of a repository, which is downloaded unless
            the hub's cache has it.
        revision: A branch, tag or commit of the repository; by default its newest state.
    """
    found = load(find_pretrained(source, revision))
    return replace(found, name=Path(source).name or found.name)


def name_of(file: Path) -> str:
    """The name of the run or of the file."""
    if file.name != "model.safetensors":
        return file.stem
    folder = file.resolve().parent
    return folder.parent.name if folder.name == "vma" else folder.name
