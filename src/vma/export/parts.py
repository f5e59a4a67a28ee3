"""The parts of a model that are functions of tensors: each can be an ONNX graph, and has its formula."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vma.kernels.winograd import Same
from vma.latents import DiagonalGaussian
from vma.likelihoods import Likelihood, ReadingOrder
from vma.model import VMA
from vma.networks.layers import FromOneMap, Norm, ToOneMap, Up

INK = 0.15  # share of ink in the images that a graph is traced and compared with
# Layers of ours that compute faster what torch's own compute; a graph has torch's own.
PLAIN: dict[type, type] = {
    FromOneMap: nn.Conv2d, ToOneMap: nn.Conv2d, Same: nn.Conv2d, Up: nn.ConvTranspose2d, Norm: nn.GroupNorm,
}  # fmt: skip
Tensors = tuple[Tensor, ...]
Examples = dict[str, Tensor]


class Graph(nn.Module):
    """A function of a model and of tensors, as a module from tensors to tensors."""

    def __init__(self, model: VMA, function: Callable[..., Tensors]) -> None:
        super().__init__()
        self.model, self.function = model, function

    def forward(self, *tensors: Tensor) -> Tensors:
        """The values of the function."""
        return self.function(self.model, *tensors)


@dataclass(frozen=True)
class Part:
    """A part of a model.

    Attributes:
        name: The name of its file.
        formula: What it computes.
        function: The same as a function of the model and the inputs.
        inputs: The names of the inputs; the same name in several parts means the same thing.
        outputs: The names of the outputs.
    """

    name: str
    formula: str
    function: Callable[..., Tensors]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def of(self, model: VMA, examples: Examples) -> Tensors:
        """The outputs of the part for the examples."""
        with torch.no_grad():
            return self.function(model, *(examples[name] for name in self.inputs))


def parts_of(model: VMA) -> tuple[Part, ...]:
    """All parts; networks and likelihood decide how many `half_…` and `target_…` there are."""
    image = torch.zeros(1, *model.image_shape)
    with torch.no_grad():
        halves = numbered("half", model.networks.items(image).decoder)
        targets = numbered("target", model.likelihood.targets(image))
    temperature = ("temperature",) if isinstance(model.likelihood, ReadingOrder) else ()
    gaussian = ("mean", "deviation")
    return (
        Part("keys", "k_a of items m", keys, ("m",), ("keys",)),
        Part("queries", "q of targets x", queries, ("x",), ("queries",)),
        Part("items", "p(z|m), and m's half of each layer of the decoder", items, ("m",), (*gaussian, *halves)),
        Part("encoder", "q(z|m,x)", encoder, ("x", "m"), gaussian),
        Part("decoder", "features of p(x|m,z)", decoder, ("z", *halves), ("features",)),
        Part("targets", "what p(x|m,z) needs of x alone", targets_of, ("x",), targets),
        Part("likelihood", "log p(x|m,z)", log_prob, (*targets, "features"), ("log_p",)),
        Part("draw", "x ~ p(x|m,z), by uniform numbers", draw, ("features", "uniforms", *temperature),
             ("images", "means")),
    )  # fmt: skip


def numbered(name: str, tensors: Tensors) -> tuple[str, ...]:
    """A numbered name for each tensor."""
    return tuple(f"{name}_{i}" for i in range(len(tensors)))


def keys(model: VMA, m: Tensor) -> Tensors:
    """k_a, as `Similarity.keys` returns them."""
    return (model.addressing.similarity.keys(model.addressing.key(m)),)


def queries(model: VMA, x: Tensor) -> Tensors:
    """q, as `Similarity.queries` returns them; scores are their inner products with keys."""
    return (model.addressing.similarity.queries(model.addressing.queries(x)),)


def moments(statistics: Tensor) -> Tensors:
    """μ and σ."""
    gaussian = DiagonalGaussian.of_statistics(statistics)
    return gaussian.mean, gaussian.log_std.exp()


def items(model: VMA, m: Tensor) -> Tensors:
    """μ and σ of p(z|m), and the decoder's halves."""
    features = model.networks.items(m)
    return (*moments(features.prior), *features.decoder)


def encoder(model: VMA, x: Tensor, m: Tensor) -> Tensors:
    """μ and σ of q(z|m,x)."""
    return moments(model.networks.encode(model.networks.targets(x), model.networks.item_half(m)))


def decoder(model: VMA, z: Tensor, *halves: Tensor) -> Tensors:
    """The decoder's output."""
    return (model.networks.decode(z, halves),)


def targets_of(model: VMA, x: Tensor) -> Tensors:
    """What the likelihood needs of x alone."""
    return tuple(each.clone() for each in model.likelihood.targets(x))


def log_prob(model: VMA, *tensors: Tensor) -> Tensors:
    """log p(x|m,z), row by row."""
    *targets, features = tensors
    rows = torch.arange(features.shape[0], device=features.device)  # `len` would fix the number
    return (model.likelihood.log_prob(tuple(targets), rows, features),)


def draw(model: VMA, features: Tensor, uniforms: Tensor, *temperature: Tensor) -> Tensors:
    """Images, and every pixel's mean given those before it."""
    drawn = model.likelihood.draw(features, uniforms, *map(float, temperature))
    return drawn.images, drawn.means


def plain(model: VMA) -> VMA:
    """The same model with torch's own layers, which the exporter knows."""
    copy = deepcopy(model)
    for module in copy.modules():
        module.__class__ = PLAIN.get(type(module), type(module))
    return copy


def examples(model: VMA, count: int, seed: int = 0) -> Examples:
    """An example for each input of every part, `count` of each: random ink, and what the model computes from it."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(count, *shape, generator=generator, dtype=torch.float32)

    x, m = ((uniform(*model.image_shape) < INK).float() for _ in range(2))
    z = torch.randn(count, model.latent, generator=generator, dtype=torch.float32)
    with torch.no_grad():
        halves = model.networks.items(m).decoder
        features = model.networks.decode(z, tuple(half.clone() for half in halves))
        targets = model.likelihood.targets(x)
    return {
        **dict(x=x, m=m, z=z, features=features, temperature=torch.tensor(0.8, dtype=torch.float32)),
        **dict(zip(numbered("half", halves), halves, strict=True)),
        **dict(zip(numbered("target", targets), targets, strict=True)),
        "uniforms": decided(model.likelihood, features, uniform(*model.image_shape)),
    }


def decided(likelihood: Likelihood, features: Tensor, uniforms: Tensor) -> Tensor:
    """Uniform numbers that draw the same black and white images: 0 where there is ink, and 1 where there is none.

    With a number close to its probability, a rounding error would decide a pixel, and with it all later ones.
    """
    if not isinstance(likelihood, ReadingOrder):
        return uniforms
    return 1 - likelihood.draw(features, uniforms).images
