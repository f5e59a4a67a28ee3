"""Which class an image is of: by where the model looks, by how well items explain the image, or by both."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vma.addressing import class_mass, uniform
from vma.bounds import BoundTerms, log_mean_exp
from vma.errors import InputError, unknown_name
from vma.fewshot.imagination import AT_ONCE
from vma.fewshot.lookup import LookUp
from vma.generative_model import AnyMemory
from vma.memory import KeyedMemory
from vma.model import VMA
from vma.reads import Reads

TARGETS = 8  # targets at a time
FEW = 16  # items that q(a|x) proposes; more would change almost nothing


@dataclass(frozen=True)
class Rule:
    """p(c|x) ∝ (Σ_{a in c} p(a|x))^γ with p(a|x) ∝ q(a|x)^α p̂(a|x)^β and γ = n^κ for n items of a class.

    p̂(a|x) ∝ p(a) p(x|m_a) is computed only where q(a|x) is largest; all other items keep their q(a|x).

    Attributes:
        proposals: Number of items whose likelihood is computed; None for all items.
        alpha: α, the weight of where the model looks.
        beta: β, the weight of the likelihood. Log-likelihoods of hundreds of dependent pixels differ too much: with
            β = 1 the answer is far too sure.
        kappa: κ. The items of a class are several witnesses: κ = 0 averages them, and the answer is too modest; κ =
            1 would treat them as independent.
    """

    proposals: int | None
    alpha: float
    beta: float
    kappa: float = 0.0

    def propose(
        self, log_q: Float[Tensor, "batch memory"], keyed: KeyedMemory
    ) -> Int[Tensor, "batch proposed"]:
        """The items whose likelihood is computed: those with the largest q(a|x)."""
        in_use = len(keyed.memory.addresses())
        most = in_use if self.proposals is None else min(self.proposals, in_use)
        return log_q.topk(most).indices

    def combine(
        self,
        log_q: Float[Tensor, "batch memory"],
        proposed: Int[Tensor, "batch proposed"],
        log_p: Float[Tensor, "batch proposed"],
    ) -> Float[Tensor, "batch memory"]:
        """p(a|x) from log q(a|x) and log p(a) p(x|m_a) of the proposed items."""
        return log_q.scatter(1, proposed, self.pool(log_q.gather(1, proposed), log_p)).exp()

    def pool(
        self, log_q: Float[Tensor, "batch proposed"], log_p: Float[Tensor, "batch proposed"]
    ) -> Float[Tensor, "batch proposed"]:
        """log p(a|x) of the proposed items from log q(a|x) and log p(a) p(x|m_a), with the mass of q(a|x)."""
        weights = self.alpha * log_q + self.beta * log_p
        return weights.log_softmax(1) + log_q.logsumexp(1, keepdim=True)

    def sharpen(
        self,
        share: Float[Tensor, "batch memory"],
        classes: Sequence[Hashable],
        of_a_class: float | None = None,
    ) -> Float[Tensor, "batch memory"]:
        """p(a|x) (Σ_{b in c} p(b|x))^(γ − 1), normalised: unchanged within a class c, raised to γ between classes.

        n is the mean number of items in a class: `of_a_class`, or by default that of the classes given.
        """
        numbers = {name: number for number, name in enumerate(dict.fromkeys(classes))}
        index = torch.tensor([numbers[name] for name in classes], device=share.device)
        mass = class_mass(share, index, len(numbers))
        gamma = (len(classes) / len(numbers) if of_a_class is None else of_a_class) ** self.kappa
        sharp = share * mass.pow(gamma - 1)[:, index]
        return sharp / sharp.sum(1, keepdim=True)


RULES = {  # α, β, κ by benchmarks/recognition_rules.py, on classes held out of training, not on test classes
    "joined": Rule(FEW, alpha=0.8, beta=0.1, kappa=0.3),
    "address": Rule(0, alpha=1.0, beta=0.0),
    "proposals": Rule(FEW, alpha=0.0, beta=0.3, kappa=0.3),
    "likelihood": Rule(None, alpha=0.0, beta=1.0),
}
DEFAULT = "joined"


@dataclass(frozen=True)
class Decision:
    """Which class an image is of.

    Attributes:
        label: The most probable class.
        probabilities: Probability of every class, the most probable first. An item without a label is its own
            class, called `(item i)`.
        items: The items that decided, as (index, share), largest share first.
    """

    label: str
    probabilities: dict[str, float]
    items: tuple[tuple[int, float], ...]


def rule(name: str) -> Rule:
    """The rule of that name."""
    if name not in RULES:
        raise unknown_name("rule of recognition", name, RULES)
    return RULES[name]


@torch.no_grad()
def shares(
    look: LookUp,
    classes: Sequence[Hashable],
    by: Rule,
    samples: int,
    generator: torch.Generator | None,
    of_a_class: float | None = None,
) -> Float[Tensor, "batch memory"]:
    """What each item adds to the probability of its class, by a rule; an unreadable item adds nothing."""
    share = item_shares(look, by, samples, generator)
    return by.sharpen(share, classes, of_a_class) if by.kappa else share


def item_shares(
    look: LookUp, by: Rule, samples: int, generator: torch.Generator | None
) -> Float[Tensor, "batch memory"]:
    """p(a|x) of every item, before classes are considered."""
    model, keyed, log_q = look.model, look.keyed, look.q_a.log_probs
    if by.proposals == 0:
        return log_q.exp()
    proposed = by.propose(log_q, keyed)
    likelihood = log_likelihoods(model, keyed, look.x, samples, generator, proposed)
    return by.combine(log_q, proposed, model.prior(keyed).log_probs[proposed] + likelihood)


def log_likelihoods(
    model: VMA,
    keyed: KeyedMemory,
    x: Float[Tensor, "batch *image"],
    samples: int,
    generator: torch.Generator | None,
    addresses: Int[Tensor, "batch addresses"] | None = None,
) -> Float[Tensor, "batch addresses"]:
    """log p(x|m_a) ≈ log 1/S Σ_s p(z_s|m_a) p(x|m_a,z_s) / q(z_s|m_a,x) with z_s ~ q(z|m_a,x), for every item.

    The same S draws of noise serve all items and targets, so that chance does not favour any item.

    Args:
        model: The model.
        keyed: The memory.
        x: Targets.
        samples: S.
        generator: Source of randomness.
        addresses: The items to try for each target; None for every item that can be read.
    """
    noise = draws_of_z(model, keyed, samples, generator)
    if addresses is None:
        addresses = keyed.memory.addresses().expand(len(x), -1)
    rows = []
    for targets, tried in zip(x.split(TARGETS), addresses.split(TARGETS), strict=True):
        parts = tried.split(max(1, 2 * AT_ONCE // (samples * len(targets))), dim=1)
        rows.append(
            torch.cat([log_likelihoods_at(model, keyed, targets, part, noise) for part in parts], dim=1)
        )
    return torch.cat(rows)


def draws_of_z(
    model: VMA, keyed: KeyedMemory, samples: int, generator: torch.Generator | None
) -> Float[Tensor, "samples latent"]:
    """Noise of z, shared by all items."""
    return keyed.keys.new_empty((samples, model.latent)).normal_(generator=generator)


@torch.no_grad()
def class_log_likelihoods(
    model: VMA,
    memory: AnyMemory,
    x: Float[Tensor, "batch *image"],
    classes: int,
    samples: int,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "batch classes"]:
    """log p(x,y|M) ≈ log Σ_{a of class y} p(a) p̂(x|m_a), for every class y; M must have labels."""
    keyed = model.keyed(memory)
    if keyed.memory.labels is None:
        raise InputError("To classify by likelihood, give the memory labels.")
    a = keyed.memory.addresses()
    log_p = model.prior(keyed).log_probs[a] + log_likelihoods(model, keyed, x, samples, generator)
    labels = keyed.memory.labels[a]
    return torch.stack([log_p[:, labels == y].logsumexp(-1) for y in range(classes)], dim=1)


def log_likelihoods_at(
    model: VMA,
    keyed: KeyedMemory,
    x: Float[Tensor, "batch *image"],
    addresses: Int[Tensor, "batch addresses"],
    noise: Float[Tensor, "samples latent"],
) -> Float[Tensor, "batch addresses"]:
    """log p(x|m_a) at the `addresses` of each target, with the same `noise` for all."""
    reads, repeated = at_each(addresses, noise)
    anywhere = uniform(keyed.memory)  # only p(x|m_a) is used, so any p(a) and q(a|x) will do
    terms = model.terms_at(x, keyed.memory, anywhere, anywhere, reads, repeated)
    return mean_likelihood(terms, len(noise))


def at_each(
    addresses: Int[Tensor, "batch addresses"], noise: Float[Tensor, "samples latent"]
) -> tuple[Reads, Float[Tensor, "batch reads latent"]]:
    """Every address of a target once for each row of `noise`, and that noise."""
    each = addresses.repeat_interleave(len(noise), dim=1)
    reads = Reads(each, torch.zeros_like(each, dtype=noise.dtype))
    return reads, noise.repeat(addresses.shape[1], 1).expand(len(addresses), -1, -1)


def mean_likelihood(terms: BoundTerms, samples: int) -> Float[Tensor, "batch addresses"]:
    """log 1/S Σ_s p(z_s|m_a) p(x|m_a,z_s) / q(z_s|m_a,x) of every address, with S = `samples` reads of each."""
    log_w = terms.log_p_z + terms.log_p_x - terms.log_q_z
    return log_mean_exp(log_w.unflatten(1, (-1, samples)))


def decide(share: Float[Tensor, "memory"], names: Sequence[str], top: int) -> Decision:
    """The class of one target, from the shares of all items."""
    if top < 1:
        raise InputError(f"At least one deciding item is named, so 'top' must not be {top}.")
    values = share.tolist()
    classes: dict[str, list[float]] = {}
    for name, value in zip(names, values, strict=True):
        classes.setdefault(name, []).append(value)
    sums = {name: min(1.0, math.fsum(parts)) for name, parts in classes.items()}
    probabilities = dict(sorted(sums.items(), key=lambda pair: -pair[1]))
    return Decision(next(iter(probabilities)), probabilities, top_items(values, top))


def top_items(values: Sequence[float], top: int) -> tuple[tuple[int, float], ...]:
    """The `top` largest values with their indices, the largest first."""
    order = sorted(range(len(values)), key=lambda i: -values[i])[:top]
    return tuple((i, values[i]) for i in order)
