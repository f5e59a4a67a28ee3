"""A model in the Hugging Face hub's layout: a folder of `model.safetensors`, `config.json` and `README.md`.

`model.safetensors` is what `save_model` writes, so `vma.load` also reads such a folder. The hub's own
`PyTorchModelHubMixin` does not fit. It must be a base class of the model, and takes the model's arguments to be
numbers and names, which only a `ModelConfig` has here. Its files have no format or version, and where a
repository has no safetensors it asks for a pickle.
"""

import re
from pathlib import Path
from typing import Any

import msgspec

from vma.config import ModelConfig, config_from, config_of_file
from vma.errors import InputError, missing_extra
from vma.files import at_home, from_outside, read_ordinary, write_atomically
from vma.generative_model import GenerativeModel
from vma.pretrained import Card, pretrained_names
from vma.storage import IN_RUN, read_model, save_model

CONFIG, README = "config.json", "README.md"
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")
FRONT = """---
library_name: vma
{licence}tags:
- few-shot
- generative-model
- variational-memory-addressing
---
"""
USE = """
## Use
```python
import vma                                      # pip install 'variational-memory[hub]'

model = vma.from_pretrained("{source}")         # this folder, or the repository that you put it into
memory = model.remember("my-symbols")           # a folder of class/name.png
memory.imagine(16).images                       # more of them
memory.recognise("new.png")[0].label            # which class a new one is of
```
"""
TO_BE_TOLD = """
## To be told
What it was trained on, which licence that has, what it is good and not good for, and how good it is.
"""


def write_pretrained(model: GenerativeModel, folder: Path, readme: str, *, overwrite: bool = False) -> None:
    """Write the three files, the weights last: a folder that has weights is complete."""
    weights = folder / IN_RUN
    if weights.exists() and not overwrite:
        raise InputError(f"{folder} holds a model already: choose another folder, or overwrite it.")
    config = msgspec.json.format(msgspec.json.encode(model.config), indent=2)
    write_atomically(folder / CONFIG, config + b"\n")
    write_atomically(folder / README, readme.encode())
    save_model(model, weights)


def find_pretrained(source: str | Path, revision: str | None = None) -> Path:
    """Where `vma.load` finds a model: a local folder, a model in the box, or a repository, which is downloaded."""
    if str(source) in pretrained_names():
        return Path(source)
    folder = at_home(Path(source))
    if not folder.exists():
        if REPOSITORY.fullmatch(str(source)) is None:
            raise InputError(
                f"There is no folder {source}, nor a model in the box of that name: name one of these, or a "
                "repository of the Hugging Face hub as OWNER/NAME."
            )
        folder = download(str(source), revision)
    check_config(folder)
    return folder


def download(repository: str, revision: str | None) -> Path:
    """The files of a repository in the hub's cache; files that are there already need no connection."""
    try:
        from huggingface_hub import snapshot_download
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None
    try:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=[IN_RUN, CONFIG, README]))
    except (OSError, ValueError) as error:  # the kinds of the hub's errors, including lost connections
        why = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".:")
        raise InputError(
            f"The repository {repository} cannot be had from the Hugging Face hub: {why}. There is no folder of "
            "that name here either."
        ) from None


def check_config(folder: Path) -> None:
    """Refuse a folder whose `config.json` is not that of its weights."""
    if not (folder / CONFIG).is_file() or not (folder / IN_RUN).is_file():
        return  # `vma.load` says what is missing; weights without it are enough
    config, _ = read_model(folder / IN_RUN)
    if read_config(folder / CONFIG) != config:
        raise InputError(f"{folder / CONFIG} is not that of the weights beside it: save the model anew.")


def read_config(path: Path) -> ModelConfig:
    """The configuration in a `config.json`."""
    content = read_ordinary(path, "configuration")
    with from_outside(f"{path} is not readable as JSON: it is damaged"):
        values = msgspec.json.decode(content, type=dict[str, Any])
    return config_from(config_of_file(values))


def readme_of(name: str, model: GenerativeModel, card: Card | None) -> str:
    """A model's card in the hub's form: what is known of a model in the box, or headings left to fill in."""
    count = sum(parameter.numel() for parameter in model.parameters())
    config = model.config
    licence = "" if card is None else f"license: {card.licence.split(',')[0].lower()}\n"
    about = TO_BE_TOLD if card is None else told(card)
    what = (
        f"A {config.model} model of images of {config.height}×{config.width} pixels with the likelihood "
        f"`{config.likelihood}`, {count:,} parameters: *Variational Memory Addressing in Generative Models*.\n"
    )
    return FRONT.format(licence=licence) + f"\n# {name}\n\n{what}" + about + USE.format(source=name)


def told(card: Card) -> str:
    """What the card of a model in the box says."""
    numbers = "\n".join(f"- {each.what}: {each}" for each in card.numbers)
    return (
        f"\n{card.summary.capitalize()}.\n\n## Data, use and limits\n- trained on: {card.data}\n"
        f"- licence: {card.licence}\n- good for: {card.good_for}\n- not good for: {card.bad_for}\n"
        f"- trained with: `{card.command}`, seed {card.seed}\n\n## Measured\n{numbers}\n"
    )
