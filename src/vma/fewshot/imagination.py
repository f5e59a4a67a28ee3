"""New images from a memory: a ~ p(a), z ~ p(z|m_a), x ~ p(x|m_a,z); and one item varied along two directions."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.checks import as_tensor, is_whole
from vma.errors import InputError
from vma.fewshot.imagined import Imagined
from vma.fewshot.items import Item
from vma.latents import DiagonalGaussian
from vma.likelihoods import Drawing, join
from vma.memory import KeyedMemory, Memory
from vma.model import VMA
from vma.proposals import SearchedMemory

MOST = 10_000  # images at a time
AT_ONCE = 64  # images that a network processes at a time, which limits the memory used


@torch.no_grad()
def imagine(
    model: VMA,
    keyed: KeyedMemory,
    samples: int,
    temperature: float,
    generator: torch.Generator | None,
    item_of: Callable[[int], Item],
) -> Imagined:
    """`samples` images by a ~ p(a), z = μ + τ σ ε with μ and σ of p(z|m_a), and x ~ p(x|m_a,z)."""
    check_imagining(samples, temperature)
    items = model.prior(keyed).sample(samples, generator)
    return imagine_from(model, keyed.memory, items, temperature, generator, item_of)


def check_imagining(samples: int, temperature: float) -> None:
    """Refuse a number of images or a temperature that is impossible."""
    if not is_whole(samples) or not 1 <= samples <= MOST:
        raise InputError(f"1 to {MOST} images can be imagined at a time, not {samples!r}.")
    if not (isinstance(temperature, int | float) and 0 <= temperature < math.inf):
        raise InputError(f"The temperature must be 0 (the mean of z) or more, not {temperature}.")


@torch.no_grad()
def imagine_from(
    model: VMA,
    memory: Memory | SearchedMemory,
    items: Int[Tensor, "samples"],
    temperature: float,
    generator: torch.Generator | None,
    item_of: Callable[[int], Item],
) -> Imagined:
    """One image from each of these items: z = μ + τ σ ε with μ and σ of p(z|m_a), x ~ p(x|m_a,z)."""
    noise = next(model.parameters()).new_empty((len(items), model.latent)).normal_(generator=generator)
    uniforms = noise.new_empty((len(items), *model.image_shape)).uniform_(generator=generator)
    drawn = [
        model.draw(memory, a, temperature * e, u, temperature)
        for a, e, u in zip(items.split(64), noise.split(64), uniforms.split(64), strict=True)
    ]
    all_drawn = join(drawn)
    origins = {i: item_of(i) for i in items.unique().tolist()}
    return Imagined(items, all_drawn.images, all_drawn.means, all_drawn.shown, origins)


@torch.no_grad()
def vary(
    model: VMA,
    keyed: KeyedMemory,
    item: int,
    at: Sequence[tuple[float, float]],
    directions: Float[Tensor, "2 latent"],
) -> Float[Tensor, "points *image"]:
    """The typical image, as a figure shows it, at z = μ + σ (s d₁ + t d₂), for every (s, t) in `at`."""
    points = as_tensor("'at'", at).to(keyed.keys)
    if points.ndim != 2 or points.shape[1] != 2 or not bool(points.isfinite().all()):
        raise InputError("'at' must be a list of pairs (s, t) of finite numbers, e.g. [(0, 0), (1, -1)].")
    return around(model, keyed.items[item : item + 1], points @ directions).shown


def around(model: VMA, m: Float[Tensor, "1 *image"], noise: Float[Tensor, "points latent"]) -> Drawing:
    """The typical drawing, given one item m and z = μ + σ ε, for each row ε of `noise`."""
    networks, likelihood = model.networks, model.likelihood
    features = networks.items(m)
    z = DiagonalGaussian.of_statistics(features.prior).sample(noise)
    drawn = [likelihood.typical(networks.decode(part, features.decoder)) for part in z.split(AT_ONCE)]
    return join(drawn)


@torch.no_grad()
def main_directions(model: VMA, keyed: KeyedMemory, item: int) -> Float[Tensor, "2 latent"]:
    """Two orthonormal directions in which the image changes most.

    Row i of the matrix D is the change of p(x|m,z) from z = μ − σ_i e_i to μ + σ_i e_i; the directions are its
    first two left singular vectors, each with its largest entry positive.
    """
    axes = torch.eye(model.latent, dtype=keyed.keys.dtype, device=keyed.keys.device)
    up, down = around(model, keyed.items[item : item + 1], torch.cat((axes, -axes))).means.flatten(1).chunk(2)
    left = torch.linalg.svd(up - down, full_matrices=False).U[:, :2].T
    signs = left.gather(1, left.abs().argmax(1, keepdim=True)).sign()
    return pad_to_two(left * signs)


def any_directions(model: VMA, keyed: KeyedMemory, generator: torch.Generator) -> Float[Tensor, "2 latent"]:
    """Two orthonormal directions at random."""
    noise = keyed.keys.new_empty((model.latent, 2)).normal_(generator=generator)
    return pad_to_two(torch.linalg.qr(noise).Q.T)


def pad_to_two(directions: Float[Tensor, "_ latent"]) -> Float[Tensor, "2 latent"]:
    """The directions, the second filled with zeros if z has only one dimension."""
    return torch.cat((directions, torch.zeros_like(directions)))[:2]
