"""What the page and the server say to each other, validated."""

import unicodedata
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from vma.serve.guard import BODY, IMAGES, ITEMS, LABEL, POINTS, SAMPLES

FIELDS = 16
PIXELS = 2**16  # letters of an image of the model's size
UNPRINTABLE = ("Cc", "Cs", "Co", "Cn", "Zl", "Zp")


def printable(text: str) -> str:
    """`text` in composed form; control characters and halves of characters are refused."""
    if any(unicodedata.category(character) in UNPRINTABLE for character in text):
        raise ValueError("a name must be made of characters that can be shown")
    return unicodedata.normalize("NFC", text)


Label = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=LABEL),
    AfterValidator(printable),
]
CardId = Annotated[str, StringConstraints(max_length=32)]
Pixels = Annotated[str, StringConstraints(max_length=PIXELS)]
Png = Annotated[str, StringConstraints(max_length=BODY)]
Seed = Annotated[int, Field(ge=0, lt=2**53)]
Coordinate = Annotated[float, Field(ge=-6, le=6, allow_inf_nan=False)]


class Message(BaseModel):
    """A message: unknown fields and values of the wrong type are errors, and infinities are no numbers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Question(Message):
    """A message from outside."""

    @model_validator(mode="before")
    @classmethod
    def has_few_fields(cls, fields: Any) -> Any:
        """Refuse thousands of unknown fields at once, instead of one by one."""
        if isinstance(fields, dict) and len(fields) > FIELDS:
            raise ValueError("there are too many fields")
        return fields


class Remember(Question):
    """Put images into memory under one name; with `skip`, those that cannot be read are left out."""

    images: list[Png] = Field(min_length=1, max_length=IMAGES)
    label: Label
    skip: bool = False


class Keep(Question):
    """Put images of the model's own size into memory as they are, such as imagined ones."""

    pixels: list[Pixels] = Field(min_length=1, max_length=IMAGES)
    label: Label


class Forget(Question):
    """Take cards out of memory."""

    ids: list[CardId] = Field(min_length=1, max_length=ITEMS)


class Rename(Question):
    """Give cards another name."""

    ids: list[CardId] = Field(min_length=1, max_length=ITEMS)
    label: Label


class Undo(Question):
    """Take back the last change, if `version` still is what the memory is at."""

    version: int


class Imagine(Question):
    """New examples of a card, of all cards of a name, or of the whole memory."""

    count: int = Field(16, ge=1, le=SAMPLES)
    card: CardId | None = None
    label: Label | None = None
    temperature: float = Field(1.0, ge=0, le=3)
    seed: Seed | None = None


class Vary(Question):
    """A card, or an image's `pixels`, at points of a plane in z; seed 0 is the plane in which it changes most."""

    card: CardId | None = None
    pixels: Pixels | None = None
    points: list[Annotated[list[Coordinate], Field(min_length=2, max_length=2)]] = Field(
        min_length=1, max_length=POINTS
    )
    seed: Seed = 0

    @model_validator(mode="after")
    def varies_one_thing(self) -> "Vary":
        """Refuse a card and pixels, and neither."""
        if (self.card is None) == (self.pixels is None):
            raise ValueError("give either a card or pixels")
        return self


class Recognise(Question):
    """What the memory makes of an image."""

    image: Png


class Card(Message):
    """An item of memory."""

    id: str
    label: str
    pixels: str


class Refused(Message):
    """An image that was left out, by its place among those that were sent, and why."""

    image: int
    error: str


class Doubt(Message):
    """What is odd about an image that was remembered all the same, by its place among those that were sent."""

    image: int
    doubt: str


class State(Message):
    """The memory as it is now; `undo` says what can be taken back, `refused` what could not be remembered."""

    version: int
    model: str
    size: tuple[int, int]
    undo: str | None
    cards: list[Card]
    refused: list[Refused] = []
    doubts: list[Doubt] = []


class ImaginedImage(Message):
    """An example, and the card that it came from."""

    pixels: str
    card: str


class Imagined(Message):
    """New examples."""

    images: list[ImaginedImage]


class Varied(Message):
    """The image at each point."""

    images: list[str]


class Share(Message):
    """p(a|x) of a card, as `ImageMemory.recognise` gives it."""

    id: str
    probability: float


class ClassShare(Message):
    """p(a|x), summed over the cards of a name."""

    label: str
    probability: float


class Reading(Message):
    """What the memory makes of an image.

    Attributes:
        target: The image as the model sees it.
        card: The card with the largest p(a|x).
        reconstruction: The image, rebuilt from that card.
        cards: p(a|x) of all cards.
        classes: The same by name, the largest first.
        log_likelihood: The K-sample bound of log p(x|M), in nats.
        bits_per_pixel: The same per pixel, in bits.
        novel: Whether that is less than usual in this memory; None where that is not known (yet).
        reason: Why it is not known.
        pending: Whether it will be known in a moment.
        kl_a: KL of q(a|x) from p(a), in nats.
        kl_z: KL of q(z|m,x) from p(z|m), in nats.
    """

    target: str
    card: str
    reconstruction: str
    cards: list[Share]
    classes: list[ClassShare]
    log_likelihood: float
    bits_per_pixel: float
    novel: bool | None
    reason: str
    pending: bool
    kl_a: float
    kl_z: float
