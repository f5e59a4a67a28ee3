"""The configuration of a model: what is saved with the weights, and all that is needed to build it again."""

from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec

from vma.errors import InputError, unknown_name
from vma.files import from_outside, said
from vma.parts import FAMILIES, LIKELIHOODS, MODELS, SIMILARITIES
from vma.ranges import Number, Pixels, Size, Within, check_ranges

Dataclass = TypeVar("Dataclass", bound=Any)

READERS = ("vma", "soft-attention")  # models whose decoder is given an item of the memory
READS = ("features", "pixels")
ITEM_LAYERS = ("all", "first")
STYLES = ("paper", "modern", "published")
PRIORS = ("learned", "flat")
CHANNELS = (1, 3)
DEEPEST = 64  # layers
Maps = Annotated[int, Within(1, 2**12)]


@dataclass(frozen=True)
class ModelConfig:
    """A model, described in numbers and names; the defaults are the paper's for few-shot Omniglot.

    >>> vma.ModelConfig(height=28, width=28, maps=16).image_shape
    (28, 28)

    Attributes:
        model: `vma`, or a baseline: `vae`, `soft-attention`, `gmn`. Other packages may register further names for
            this setting and for `family`, `similarity` and `likelihood` (docs/extending.md).
        height: Pixels of an image, down.
        width: Pixels of an image, across.
        family: `convolutional` or `mlp`.
        maps: Feature maps of every convolution.
        hidden: Units of each hidden fully-connected layer: one for `convolutional`, any number for `mlp`.
        latent: |z|.
        matching: Size of the matching space, |e|.
        similarity: `normalized-key` (the paper's), `inner-product` or `cosine`.
        prior: `learned` (a query e^p) or `flat`.
        tied: Use one network for keys and queries.
        learned_items: |M| of a learned memory; 0 if raw images are given as the memory with each call.
        item_size: Size of a learned item of the `mlp` family. A learned item of the `convolutional` family
            is shaped like an image.
        item_layers: Layers of an `mlp` decoder that receive m: `all`, or only the `first`. In the `convolutional`
            family it is always all of them.
        style: `paper` (ReLU), `modern` (GroupNorm, SiLU and residual sums; convolutional only), or `published`
            (only for `gmn`: the layers of its public code, for images of 28×28 pixels).
        ink: Expected share of ink, which sets the bias of the output at the start of training.
        reads: What soft attention averages: `features` at every scale, or `pixels`.
        likelihood: p(x|m,z): `bernoulli` (the paper's: black and white, independent pixels), `reading-order`
            (black and white, each pixel given the neighbours before it), or `categorical` (grey levels or
            colours, independent pixels).
        context_maps: Maps of the context, and of the decoder's end, for `reading-order`.
        neighbourhood: Width of the neighbourhood that each causal layer sees, for `reading-order`.
        levels: Grey levels of each channel, for `categorical`.
        channels: 1, or 3 for images in colour, which only `categorical` draws.
    """

    model: str = "vma"
    height: Pixels = 26
    width: Pixels = 26
    family: str = "convolutional"
    maps: Maps = 64
    hidden: tuple[Size, ...] = (256,)
    latent: Size = 64
    matching: Size = 128
    similarity: str = "normalized-key"
    prior: str = "learned"
    tied: bool = False
    learned_items: Number = 0
    item_size: Size = 256
    item_layers: str = "all"
    style: str = "paper"
    ink: Annotated[float, Within(0.0, 1.0, above=True, below=True)] = 0.14
    reads: str = "features"
    likelihood: str = "bernoulli"
    context_maps: Maps = 16
    neighbourhood: tuple[Annotated[int, Within(3, 2**10)], ...] = (7, 5, 5)
    levels: Annotated[int, Within(2, 256)] = 8
    channels: Annotated[int, Within(1, 3)] = 1

    def __post_init__(self) -> None:
        self.check_names()
        self.check_numbers()

    def check_names(self) -> None:
        """Refuse unknown names, listing the known ones."""
        for registry, name in (
            (SIMILARITIES, self.similarity),
            (MODELS, self.model),
            (FAMILIES, self.family),
            (LIKELIHOODS, self.likelihood),
        ):
            if name not in registry:
                raise unknown_name(registry.kind, name, registry)
        for kind, name, names in (
            ("item_layers", self.item_layers, ITEM_LAYERS),
            ("style", self.style, STYLES),
            ("kind of reads", self.reads, READS),
            ("prior", self.prior, PRIORS),
        ):
            if name not in names:
                raise unknown_name(kind, name, names)

    def check_numbers(self) -> None:
        """Refuse sizes that no network can be built with."""
        check_ranges(self)
        for name in ("hidden", "neighbourhood"):
            if (
                not isinstance(getattr(self, name), tuple | list)
                or not 1 <= len(getattr(self, name)) <= DEEPEST
            ):
                raise InputError(f"{name} must list 1 to {DEEPEST} numbers, one for each layer.")
        if self.channels not in CHANNELS or (self.channels > 1 and self.likelihood != "categorical"):
            raise InputError(
                f"channels must be 1, or 3 with likelihood='categorical', not {self.channels} with "
                f"{self.likelihood!r}."
            )
        if any(size % 2 == 0 for size in self.neighbourhood):
            raise InputError(
                f"neighbourhood must list odd widths of at least 3, one for each layer, not {self.neighbourhood}."
            )
        if self.style == "published" and (self.model, *self.image_shape) != ("gmn", 28, 28):
            raise InputError("style='published' is that of the model 'gmn' with images of 28x28 pixels.")
        if self.family == "convolutional":
            self.check_convolutional()
        elif self.family == "mlp" and self.tied and self.learned_items:
            raise InputError("Learned vectors and images cannot share one network: use tied=False.")

    def check_convolutional(self) -> None:
        """Refuse what the convolutional family cannot do."""
        if min(self.height, self.width) < 16:
            raise InputError(
                f"Convolutional networks need at least 16x16 pixels, not {self.height}x{self.width}: "
                "use family='mlp', or larger images."
            )
        if len(self.hidden) != 1:
            raise InputError(f"Convolutional networks have one hidden layer, not {len(self.hidden)}.")
        if self.style == "modern" and self.maps % 8:
            raise InputError(f"style='modern' needs maps in multiples of 8, not {self.maps}.")

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Shape of a target: (height, width), or (channels, height, width) in colour."""
        size = (self.height, self.width)
        return size if self.channels == 1 else (self.channels, *size)

    @property
    def item_shape(self) -> tuple[int, ...]:
        """Shape of a memory item: an image, or a vector for a learned memory of the `mlp` family."""
        return (self.item_size,) if self.family == "mlp" and self.learned_items else self.image_shape


def paper_mlp(**changes: Any) -> ModelConfig:
    """The paper's network for binarized MNIST: hidden layers of 256 and 128, z of 32.

    >>> vma.paper_mlp(learned_items=256).item_shape
    (256,)
    """
    defaults: dict[str, Any] = {
        "height": 28, "width": 28, "family": "mlp", "hidden": (256, 128), "latent": 32, "ink": 0.13,
    }  # fmt: skip
    return config_from({**defaults, **changes})


def config_of_file(values: Any) -> Any:
    """The same values, completed if the file is older than `item_layers`: m then went to the first layer alone."""
    if isinstance(values, dict) and values.get("family") == "mlp" and values.get("model", "vma") in READERS:
        return {"item_layers": "first", **values}
    return values


def completed(values: Any, usual: dict[str, Any], kind: str, prefix: str = "") -> Any:
    """The values, with defaults from `usual` for what they leave out, at any depth; unknown names are refused."""
    if not isinstance(values, dict):
        return values  # of the wrong type, which is said when it is converted
    for name in values:
        if name not in usual:
            raise unknown_name(kind, prefix + str(name), [prefix + each for each in usual])
    whole = {**usual, **values}
    for name, below in usual.items():
        if isinstance(below, dict):
            whole[name] = completed(whole[name], below, kind, f"{prefix}{name}.")
    return whole


def config_from(values: dict[str, Any]) -> ModelConfig:
    """A `ModelConfig` from plain values, as read from a file; unknown keys and wrong types are refused."""
    return typed(completed(values, USUAL, "configuration key"), ModelConfig, "The configuration has")


def typed(values: Any, kind: type[Dataclass], what: str) -> Dataclass:
    """Plain values as a dataclass; where a type is wrong, the sentence of the error begins with `what`."""
    try:
        with from_outside(f"{what} a value that cannot be used"):
            return msgspec.convert(values, kind)
    except InputError as error:
        refused = error.__cause__
        if not isinstance(refused, msgspec.ValidationError):
            raise
        if isinstance(refused.__cause__, InputError):
            raise refused.__cause__ from None
        raise InputError(f"{what} a value of the wrong type: {said(refused)}.") from None


USUAL = msgspec.to_builtins(ModelConfig())
