"""Sleep: q(a|x) learns where dreams came from (Hinton et al., 1995; Bornschein and Bengio, 2015)."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vma.addressing import AddressDistribution
from vma.generative_model import AnyMemory
from vma.memory import Memory
from vma.model import VMA
from vma.warps import Look


@dataclass(frozen=True)
class Dreams:
    """a ~ p(a), z ~ p(z|m_a), x̃ ~ p(x|m_a,z): images whose address is known.

    Attributes:
        memory: M, from which they were dreamt.
        p_a: p(a) of the model that dreamt them.
        addresses: a of each dream.
        images: x̃ of each dream.
    """

    memory: Memory
    p_a: AddressDistribution
    addresses: Int[Tensor, "dreams"]
    images: Float[Tensor, "dreams *image"]


@dataclass(frozen=True)
class DreamRecognition:
    """How well q(a|x) recognises its own dreams.

    Attributes:
        log_q_a: log q(a|x̃) of every dream's own address.
        found: Whether that address has the most mass.
        found_class: Whether the address with the most mass has the same class, where items have labels.
        kl_p_a: KL(p(a) ‖ p'(a)), from the p(a) that was dreamt with to the p(a) that the keys give now.
    """

    log_q_a: Float[Tensor, "dreams"]
    found: Bool[Tensor, "dreams"]
    found_class: Bool[Tensor, "dreams"]
    kl_p_a: Float[Tensor, ""]

    @property
    def loss(self) -> Float[Tensor, ""]:
        """−1/N Σ log q(a|x̃) + KL(p(a) ‖ p'(a)): p(a) shares its keys with q(a|x), and should stay as it was."""
        return self.kl_p_a - self.log_q_a.mean()


@torch.no_grad()
def dream(
    model: VMA,
    memory: AnyMemory,
    count: int,
    *,
    binary: bool = True,
    generator: torch.Generator | None = None,
) -> Dreams:
    """`count` dreams of `model`.

    Args:
        model: The model that dreams.
        memory: M; leave it out for a learned memory.
        count: How many.
        binary: Draw black or white pixels; otherwise a dream holds the probability of ink of every pixel.
        generator: Source of randomness.
    """
    keyed = model.keyed(memory)
    p_a = model.addressing.prior(keyed)
    addresses = p_a.sample(count, generator)
    noise = keyed.items.new_empty((count, model.latent)).normal_(generator=generator)
    uniforms = noise.new_empty((count, *model.image_shape)).uniform_(generator=generator)
    drawn = model.draw(keyed.memory, addresses, noise, uniforms)
    return Dreams(keyed.memory, p_a, addresses, drawn.images if binary else drawn.means)


def recognise_dreams(model: VMA, dreams: Dreams, seen: Look | None = None) -> DreamRecognition:
    """log q(a|x̃) of every dream by `model`, whose matching networks may see warped images.

    Its mean over dreams is an unbiased estimate of E_p(a,x)[log q(a|x)] = −E_p(x)[KL(p(a|x) ‖ q(a|x))] + const.
    """
    addressing, memory = model.addressing, dreams.memory
    keyed = addressing.keyed(memory if seen is None else memory.showing(seen))
    x = dreams.images if seen is None else seen(dreams.images)
    q_a = addressing.posterior(x, keyed)
    best = q_a.log_probs.argmax(-1)
    labels = torch.arange(len(memory), device=best.device) if memory.labels is None else memory.labels
    return DreamRecognition(
        log_q_a=q_a.log_prob(dreams.addresses.unsqueeze(1)).squeeze(1),
        found=best == dreams.addresses,
        found_class=labels[best] == labels[dreams.addresses],
        kl_p_a=dreams.p_a.kl(addressing.prior(keyed)),
    )
