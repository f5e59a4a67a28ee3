"""A trained model, ready to remember: from a run's folder, or from an exported file."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from vma.config import ModelConfig
from vma.data.folder import FolderOptions
from vma.errors import InputError
from vma.fewshot.image_memory import ImageMemory
from vma.fewshot.images import ink_for, options_for
from vma.fewshot.labels import as_labels
from vma.fewshot.memory_file import read_memory
from vma.memory import KeyedMemory, Memory
from vma.model import VMA
from vma.storage import load_model, model_file


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model with its weights fixed.

    Attributes:
        model: The model itself.
        name: What to call it.
        fingerprint: Changes with any weight: keys of one model are of no use to another.
    """

    model: VMA
    name: str
    fingerprint: str

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
        return ImageMemory(self.model, keyed, own, self.fingerprint, options or options_for(self.config))

    def open_memory(self, path: str | Path, *, options: FolderOptions | None = None) -> ImageMemory:
        """The memory in the file `path`, as `ImageMemory.save` wrote it, with this model or with another."""
        stored = read_memory(Path(path).expanduser(), self.config.image_shape)
        like = next(self.model.parameters())
        keys = stored.keys_of(self.fingerprint, self.config.matching)
        if keys is None:
            keyed = self.model.remember(stored.items)
        else:
            keyed = KeyedMemory(Memory(stored.items.to(like)), keys.to(like)).by_coordinate()
        return ImageMemory(
            self.model, keyed, stored.labels, self.fingerprint, options or options_for(self.config)
        )


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
    if next(model.parameters()).dtype == torch.float16:  # for the disk alone: a CPU is slow with it
        model = model.float()
    return TrainedModel(model.eval().requires_grad_(False), name_of(file), fingerprint(model))


def name_of(file: Path) -> str:
    """The run's name, or the file's."""
    if file.name != "model.safetensors":
        return file.stem
    folder = file.resolve().parent
    return folder.parent.name if folder.name == "vma" else folder.name


def fingerprint(model: VMA) -> str:
    """A hash of the configuration and of all weights."""
    digest = hashlib.sha256(msgspec.json.encode(model.config))
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()
