"""Which class an image is of: Σ_{a in c} q(a|x), or p(c|x) ∝ Σ_{a in c} p(a) p(x|m_a)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vma.bounds import log_mean_exp
from vma.errors import InputError, unknown_name
from vma.reads import Reads
from vma.use.keyed import AT_ONCE, KeyedMemory

RULES = ("address", "likelihood")
TARGETS = 8  # targets at a time


@dataclass(frozen=True)
class Recognition:
    """What an image was taken for.

    Attributes:
        label: The most probable class.
        probabilities: Probability of every class, the most probable first. An item without a label is a class of
            its own, called `(item i)`.
        items: The items that decided, as (index, share), the largest share first.
    """

    label: str
    probabilities: dict[str, float]
    items: tuple[tuple[int, float], ...]


@torch.no_grad()
def shares(
    keyed: KeyedMemory,
    x: Float[Tensor, "batch height width"],
    by: str,
    samples: int,
    generator: torch.Generator | None,
) -> Float[Tensor, "batch memory"]:
    """q(a|x), or p(a|x) ∝ p(a) p(x|m_a), for every item."""
    if by not in RULES:
        raise unknown_name("rule of recognition", by, RULES)
    if by == "address":
        return keyed.posterior(x).log_probs.exp()
    joint = keyed.prior().log_probs + log_likelihoods(keyed, x, samples, generator)
    return joint.softmax(-1)


def log_likelihoods(
    keyed: KeyedMemory,
    x: Float[Tensor, "batch height width"],
    samples: int,
    generator: torch.Generator | None,
) -> Float[Tensor, "batch memory"]:
    """log p(x|m_a) ≈ log 1/S Σ_s p(z_s|m_a) p(x|m_a,z_s) / q(z_s|m_a,x) with z_s ~ q(z|m_a,x), for every item.

    The same S draws of noise serve all items and targets: what differs between two items is not their luck.
    """
    noise = keyed.keys.new_empty((samples, keyed.model.config.latent)).normal_(generator=generator)
    rows = []
    for targets in x.split(TARGETS):
        together = max(1, 2 * AT_ONCE // (samples * len(targets)))
        parts = keyed.memory.addresses().split(together)
        rows.append(torch.cat([log_likelihoods_at(keyed, targets, part, noise) for part in parts], dim=1))
    return torch.cat(rows)


def log_likelihoods_at(
    keyed: KeyedMemory, x: Tensor, addresses: Tensor, noise: Float[Tensor, "samples latent"]
) -> Float[Tensor, "batch addresses"]:
    """log p(x|m_a) at some `addresses`, with the same `noise` for each."""
    samples, p_a, q_a = len(noise), keyed.prior(), keyed.posterior(x)
    each = addresses.repeat_interleave(samples).expand(len(x), -1)
    reads = Reads(each, torch.zeros_like(each, dtype=x.dtype))
    repeated = noise.repeat(len(addresses), 1).expand(len(x), -1, -1)
    terms = keyed.model.terms_at(x, keyed.memory, p_a, q_a, reads, repeated)
    log_w = terms.log_p_z + terms.log_p_x - terms.log_q_z
    return log_mean_exp(log_w.unflatten(1, (len(addresses), samples)))


def recognition(share: Float[Tensor, "memory"], names: Sequence[str], top: int) -> Recognition:
    """The class of one target, from its shares of all items."""
    if top < 1:
        raise InputError(f"At least one deciding item is named, so 'top' must not be {top}.")
    values = share.tolist()
    classes: dict[str, list[float]] = {}
    for name, value in zip(names, values, strict=True):
        classes.setdefault(name, []).append(value)
    sums = {name: min(1.0, math.fsum(parts)) for name, parts in classes.items()}
    probabilities = dict(sorted(sums.items(), key=lambda pair: -pair[1]))
    return Recognition(next(iter(probabilities)), probabilities, top_items(values, top))


def top_items(values: Sequence[float], top: int) -> tuple[tuple[int, float], ...]:
    """The `top` largest values with their indices, the largest first."""
    order = sorted(range(len(values)), key=lambda i: -values[i])[:top]
    return tuple((i, values[i]) for i in order)
