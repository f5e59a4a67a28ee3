"""Recognising, explaining and scoring one image together: each network sees each item, target and pair once."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.bounds import BoundTerms, decomposition, multi_sample_bound
from vma.checks import generator_of
from vma.fewshot.explanation import reconstruct
from vma.fewshot.lookup import LookUp
from vma.fewshot.novelty import Norm
from vma.fewshot.recognition import (
    Decision,
    Rule,
    at_each,
    decide,
    draws_of_z,
    mean_likelihood,
)
from vma.fewshot.scores import Score, judge
from vma.reads import Reads, draw


@dataclass(frozen=True)
class Examination:
    """What `recognise`, `explain` and `score` say about one image.

    Attributes:
        target: The image as the model saw it.
        recognised: The class, and all items with their shares.
        score: log p(x|M), and whether the image is new.
        kl_a: KL(q(a|x) ‖ p(a)), in nats.
        kl_z: E_q(a|x)[KL(q(z|m_a,x) ‖ p(z|m_a))], in nats.
        reconstruction: The image, rebuilt from the item with the largest share.
    """

    target: Float[Tensor, "*image"]
    recognised: Decision
    score: Score
    kl_a: float
    kl_z: float
    reconstruction: Float[Tensor, "*image"]


@torch.no_grad()
def examine(
    look: LookUp, names: Sequence[str], by: Rule, norm: Norm, samples: int, draws: int, seed: int | None
) -> Examination:
    """The answers that single questions would give, with K = `samples` reads and `draws` of z per proposal."""
    proposed = by.propose(look.q_a.log_probs, look.keyed)
    terms, log_p = read_once(look, proposed, samples, draws, seed)
    log_p = log_p + look.model.prior(look.keyed).log_probs[proposed]
    share = by.sharpen(by.combine(look.q_a.log_probs, proposed, log_p), names)[0]
    found, parts = decide(share, names, len(names)), decomposition(terms)
    best, _ = found.items[0]
    return Examination(
        target=look.x[0],
        recognised=found,
        score=judge(look, float(multi_sample_bound(terms)[0]), norm, samples, seed),
        kl_a=float(parts.kl_a[0]),
        kl_z=float(parts.kl_z[0]),
        reconstruction=reconstruct(look.model, look.keyed.items, look.x[0], best),
    )


def read_once(
    look: LookUp, proposed: Int[Tensor, "1 proposed"], samples: int, draws: int, seed: int | None
) -> tuple[BoundTerms, Float[Tensor, "1 proposed"]]:
    """The terms at `samples` reads from q(a|x), and log p(x|m_a) of the proposed items, each by `draws` of z."""
    model, memory, like = look.model, look.keyed.memory, look.x
    source, again = generator_of(seed, like.device), generator_of(seed, like.device)
    drawn = draw(look.q_a, samples, memory, "independent", source)
    noise = torch.randn((1, samples, model.latent), dtype=like.dtype, device=like.device, generator=source)
    tried, repeated = at_each(proposed, draws_of_z(model, look.keyed, draws, again))
    reads = Reads(
        torch.cat((drawn.addresses, tried.addresses), 1), torch.cat((drawn.log_mass, tried.log_mass), 1)
    )
    terms = model.terms_at(
        look.x, memory, model.prior(look.keyed), look.q_a, reads, torch.cat((noise, repeated), 1)
    )
    return terms.reads(slice(samples)), mean_likelihood(terms.reads(slice(samples, None)), draws)
