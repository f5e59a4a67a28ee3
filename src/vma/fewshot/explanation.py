"""What the model looked at: q(a|x), the divergences, and what it makes of the item it chose."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vma.bounds import decomposition, multi_sample_bound
from vma.checks import check_samples
from vma.fewshot.labels import Labels
from vma.fewshot.recognition import recognition
from vma.latents import DiagonalGaussian
from vma.memory import KeyedMemory
from vma.model import VMA


@dataclass(frozen=True)
class ExplainedItem:
    """An item that the model looked at, with its label and its share of q(a|x)."""

    item: int
    label: str | None
    q: float


@dataclass(frozen=True)
class Explanation:
    """Where the model looked for one image, and what it found.

    Attributes:
        target: The image as the model saw it.
        q: q(a|x) over all items.
        kl_a: KL(q(a|x) ‖ p(a)), in nats: what the image told about where to look.
        kl_z: E_q(a|x)[KL(q(z|m_a,x) ‖ p(z|m_a))], in nats: what it told about how it differs from the item.
        log_p: The K-sample bound of log p(x|M), in nats.
        top: The items of the largest q(a|x).
        reconstruction: What the model draws, given the first of these and the mean of q(z|m,x).
        label: The class with the most mass of q(a|x).
        probabilities: The mass of every class.
    """

    target: Float[Tensor, "*image"]
    q: Float[Tensor, "memory"]
    kl_a: float
    kl_z: float
    log_p: float
    top: tuple[ExplainedItem, ...]
    reconstruction: Float[Tensor, "*image"]
    label: str
    probabilities: dict[str, float]


@torch.no_grad()
def explain(
    model: VMA,
    keyed: KeyedMemory,
    labels: Labels,
    names: Sequence[str],
    x: Float[Tensor, "*image"],
    samples: int,
    top: int,
    generator: torch.Generator | None,
) -> Explanation:
    """Everything about one image, from `samples` reads of memory."""
    check_samples(samples, 1, "An explanation")
    terms = model.terms(x[None], keyed, samples, generator=generator)
    q = model.posterior(x[None], keyed).log_probs[0].exp()
    found, parts = recognition(q, names, top), decomposition(terms)
    return Explanation(
        target=x,
        q=q,
        kl_a=float(parts.kl_a[0]),
        kl_z=float(parts.kl_z[0]),
        log_p=float(multi_sample_bound(terms)[0]),
        top=tuple(ExplainedItem(i, labels[i], share) for i, share in found.items),
        reconstruction=reconstruct(model, keyed.items, x, found.items[0][0]),
        label=found.label,
        probabilities=found.probabilities,
    )


def reconstruct(
    model: VMA, items: Float[Tensor, "memory *image"], x: Float[Tensor, "*image"], item: int
) -> Float[Tensor, "*image"]:
    """What the model draws at the mean of q(z|m,x)."""
    networks = model.networks
    m = items[item : item + 1]
    statistics = networks.encode(networks.targets(x[None]), networks.item_half(m))
    mean = DiagonalGaussian.of_statistics(statistics).mean
    drawn = model.likelihood.most_probable(networks.decode(mean, networks.items(m).decoder))
    return drawn.shown[0]
