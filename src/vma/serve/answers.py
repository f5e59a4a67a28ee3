"""Questions to a memory, and its answers as messages."""

import base64
import binascii
import io
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from vma.data.picture import UNREADABLE
from vma.errors import InputError
from vma.fewshot import ImageMemory, Norm, TrainedModel
from vma.fewshot.examination import examine
from vma.fewshot.images import Ink, ink_for, options_for, read_ink
from vma.fewshot.recognition import DEFAULT, RULES
from vma.serve import messages
from vma.serve.guard import SIDE
from vma.serve.store import Contents, Moment

SAMPLES = 16  # K of a score: quick enough to follow a drawing
DRAWS = 8  # of z, for each card whose likelihood is asked for
SEED = 0
UNKNOWN = Norm(None, None, "what is usual here is being worked out")


@dataclass(frozen=True)
class Sent:
    """Images that somebody sent.

    Attributes:
        ink: Those that could be read.
        refused: The others, by their places.
        doubts: What is odd about some that could be read, by their places.
    """

    ink: Ink
    refused: tuple[messages.Refused, ...] = ()
    doubts: tuple[messages.Doubt, ...] = ()


def state(model: TrainedModel, moment: Moment, sent: Sent | None = None) -> messages.State:
    """The memory as the page shows it, and what is to say of the images that were sent."""
    found = moment.contents.images
    rows = () if found is None else zip(moment.contents.ids, found.names, pixels(found.items), strict=True)
    return messages.State(
        version=moment.version,
        model=f"{model.name}, {model.size[0]}×{model.size[1]} pixels",
        size=model.size,
        undo=moment.undo,
        cards=[messages.Card(id=card, label=label, pixels=ink) for card, label, ink in rows],
        refused=list(sent.refused) if sent else [],
        doubts=list(sent.doubts) if sent else [],
    )


def imagine(contents: Contents, message: messages.Imagine) -> messages.Imagined:
    """New examples."""
    drawn = contents.known().imagine(
        message.count,
        label=message.label,
        item=None if message.card is None else contents.number(message.card),
        temperature=message.temperature,
        seed=message.seed,
    )
    rows = zip(drawn.items.tolist(), pixels(drawn.shown), strict=True)
    return messages.Imagined(
        images=[messages.ImaginedImage(pixels=ink, card=contents.ids[item]) for item, ink in rows]
    )


def vary(contents: Contents, message: messages.Vary, alone: Callable[[str], ImageMemory]) -> messages.Varied:
    """One image at each point of a plane in z: a card, or pixels, which `alone` makes a memory of."""
    if message.card is None:
        memory, number = alone(message.pixels or ""), 0
    else:
        memory, number = contents.known(), contents.number(message.card)
    points = [(x, y) for x, y in message.points]
    return messages.Varied(images=pixels(memory.vary(number, points, seed=message.seed or None)))


def recognise(contents: Contents, image: str, norms: "Norms") -> messages.Reading:
    """What the memory makes of an image."""
    memory = contents.known()
    drawing, norm = ink_for(memory.model, read_png(image), memory.options, read_ink), norms.of(memory)
    found = examine(memory.look_up(drawing), memory.names, RULES[DEFAULT], norm, SAMPLES, DRAWS, SEED)
    items, classes = sorted(found.recognised.items), found.recognised.probabilities.items()
    target, reconstruction = pixels(torch.stack((found.target, found.reconstruction)))
    return messages.Reading(
        target=target,
        card=contents.ids[found.recognised.items[0][0]],
        reconstruction=reconstruction,
        cards=[messages.Share(id=contents.ids[item], probability=p) for item, p in items],
        classes=[messages.ClassShare(label=name, probability=p) for name, p in classes],
        log_likelihood=found.score.log_p,
        bits_per_pixel=found.score.bits_per_pixel,
        novel=found.score.novel,
        reason=norm.reason,
        pending=norm is UNKNOWN,
        kl_a=found.kl_a,
        kl_z=found.kl_z,
    )


class Norms:
    """What scores are usual in a memory: worked out by a thread of its own, since it takes seconds."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1, "vma-norms", initializer=torch.set_num_threads, initargs=(1,))
        self.known: WeakKeyDictionary[ImageMemory, Norm] = WeakKeyDictionary()
        self.lock = Lock()
        self.wanted: ImageMemory | None = None

    def of(self, memory: ImageMemory) -> Norm:
        """What is usual in `memory`, or UNKNOWN where that is still being worked out."""
        with self.lock:
            if memory in self.known:
                return self.known[memory]
            if memory is not self.wanted:
                self.wanted = memory
                self.pool.submit(self.work_out, memory)
            return UNKNOWN

    def work_out(self, memory: ImageMemory) -> None:
        """Fill in the answer, unless another memory has been asked about since."""
        if memory is self.wanted:
            norm = memory.norm(SAMPLES, SEED)
            with self.lock:
                self.known[memory] = norm

    def close(self) -> None:
        """Let go of the thread."""
        self.pool.shutdown(wait=False, cancel_futures=True)


def read_pngs(model: TrainedModel, texts: list[str], skip: bool) -> Sent:
    """The images in base64 texts; with `skip`, those that cannot be read are left out, unless none can."""
    read: dict[int, Ink] = {}
    refused = []
    for number, text in enumerate(texts):
        try:
            read[number] = ink_for(model.model, read_png(text), None, read_ink)
        except InputError as error:
            refused.append(messages.Refused(image=number, error=str(error)))
            if not skip or len(refused) == len(texts):
                raise
    doubts = (messages.Doubt(image=i, doubt=what) for i, ink in read.items() for what in ink.doubts if what)
    return Sent(join_ink(list(read.values())), tuple(refused), tuple(doubts))


def join_ink(parts: list[Ink]) -> Ink:
    """All images, in one."""
    names = tuple(name for part in parts for name in part.names)
    return Ink(torch.cat([part.images for part in parts]), names, (None,) * len(names))


def read_png(text: str) -> Image.Image:
    """The image in a base64 text; its size is known to be harmless before a pixel is read."""
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InputError(
            "An image must be a PNG file as base64, without line breaks or a data: prefix."
        ) from None
    try:
        image = Image.open(io.BytesIO(content), formats=("PNG",))
        check_size(image)
        image.load()
    except UNREADABLE as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            "An image cannot be read: it is not a PNG file, is damaged, or is far too large."
        ) from None
    return image


def check_size(image: Image.Image) -> None:
    """Refuse images with too many pixels."""
    if max(image.size) > SIDE:
        raise InputError(f"An image has {image.width}x{image.height} pixels: send at most {SIDE}x{SIDE}.")


def read_pixels(model: TrainedModel, texts: list[str]) -> Ink:
    """Images of the model's size, as `pixels` writes them; where it knows no grey, half the strongest is full."""
    images = torch.stack([read_levels(text, model.size) for text in texts]) / 255
    strongest = images.amax((1, 2), keepdim=True)
    if not strongest.all():
        raise InputError("There is no ink in the image: choose another.")
    if options_for(model.config).binarize is not None:
        images = (images >= strongest / 2).float()
    return Ink(images, ("the image",) * len(images), (None,) * len(images))


def read_levels(text: str, size: tuple[int, int]) -> Float[Tensor, "height width"]:
    """One byte a pixel, out of base64."""
    try:
        levels = np.frombuffer(base64.b64decode(text, validate=True), np.uint8)
    except (binascii.Error, ValueError):
        raise InputError("Pixels must be base64, without line breaks or a data: prefix.") from None
    if levels.size != math.prod(size):
        raise InputError(f"Pixels must be {math.prod(size)} bytes, one for each of {size[0]}x{size[1]}.")
    return torch.tensor(levels.reshape(size), dtype=torch.float32)


def pixels(images: Float[Tensor, "images *image"]) -> list[str]:
    """Each image row by row, one byte a pixel: 0 is empty, 255 is full ink."""
    levels = (images * 255).round().to(torch.uint8).cpu().numpy()
    return [base64.b64encode(np.ascontiguousarray(image).tobytes()).decode() for image in levels]
