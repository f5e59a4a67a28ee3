"""Questions to a memory, and its answers as messages."""

import base64
import binascii
import io
import math
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from vma.data.folder import UNREADABLE
from vma.errors import InputError
from vma.fewshot import Explanation, ImageMemory, Norm, TrainedModel
from vma.fewshot.explanation import reconstruct
from vma.fewshot.scores import judge
from vma.serve import messages
from vma.serve.guard import SIDE
from vma.serve.store import Contents, Moment

SAMPLES = 16  # K of a score: quick enough to follow a drawing
SEED = 0
UNKNOWN = Norm(None, None, "what is usual here is being worked out")


def state(model: TrainedModel, moment: Moment) -> messages.State:
    """The memory as the page shows it."""
    found = moment.contents.images
    rows = () if found is None else zip(moment.contents.ids, found.names, pixels(found.items), strict=True)
    return messages.State(
        version=moment.version,
        model=f"{model.name}, {model.size[0]}×{model.size[1]} pixels",
        size=model.size,
        undo=moment.undo,
        cards=[messages.Card(id=card, label=label, pixels=ink) for card, label, ink in rows],
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


def vary(contents: Contents, message: messages.Vary) -> messages.Varied:
    """One card at each point of a plane in z."""
    points = [(x, y) for x, y in message.points]
    images = contents.known().vary(contents.number(message.card), points, seed=message.seed or None)
    return messages.Varied(images=pixels(images))


def recognise(contents: Contents, image: str, norms: "Norms") -> messages.Reading:
    """What the memory makes of an image."""
    memory, drawing = contents.known(), read_png(image)
    found = memory.explain(drawing, samples=SAMPLES, top=1, seed=SEED)
    (answer,) = memory.recognise(drawing, top=len(memory), seed=SEED)
    norm, (best, _) = norms.of(memory), answer.items[0]
    rebuilt = reconstruct(memory.model, memory.items, found.target, best)
    target, reconstruction = pixels(torch.stack((found.target, rebuilt)))
    return messages.Reading(
        target=target,
        card=contents.ids[best],
        reconstruction=reconstruction,
        cards=[messages.Share(id=contents.ids[item], probability=p) for item, p in sorted(answer.items)],
        classes=[messages.ClassShare(label=name, probability=p) for name, p in answer.probabilities.items()],
        log_likelihood=found.log_p,
        bits_per_pixel=-found.log_p / (math.log(2) * math.prod(found.target.shape[-2:])),
        novel=is_novel(memory, found, norm),
        reason=norm.reason,
        pending=norm is UNKNOWN,
        kl_a=found.kl_a,
        kl_z=found.kl_z,
    )


def is_novel(memory: ImageMemory, found: Explanation, norm: Norm) -> bool | None:
    """Whether an image is more unusual than the memory's own items; None where that is not known."""
    if norm.rule is None:
        return None
    return judge(memory.model, memory.keyed, found.target, found.log_p, norm, SAMPLES, SEED).novel


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


def pixels(images: Float[Tensor, "images *image"]) -> list[str]:
    """Each image row by row, one byte a pixel: 0 is empty, 255 is full ink."""
    levels = (images * 255).round().to(torch.uint8).cpu().numpy()
    return [base64.b64encode(np.ascontiguousarray(image).tobytes()).decode() for image in levels]
