"""p(x|M) = Σ_a p(a) ∫ p(z|m_a) p(x|z,m_a) dz (equation 1), and q(a,z|x) = q(a|x) q(z|m_a,x) (equation 3)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vma.addressing import AddressDistribution, Addressing, Posterior, Prior
from vma.bounds import BoundTerms, multi_sample_bound
from vma.checks import as_tensor, check_samples, check_shape
from vma.chunks import in_chunks
from vma.config import ModelConfig
from vma.errors import InputError
from vma.generative_model import AnyMemory, GenerativeModel
from vma.kernels import compiled
from vma.latents import DiagonalGaussian
from vma.likelihoods import Drawing, Likelihood, blind_targets
from vma.memory import KeyedMemory, LearnedMemory, Memory, choose_memory
from vma.networks import Networks
from vma.proposals import Proposal, SearchedMemory, draw_places
from vma.reads import FEWEST_ADAPTIVE, Gather, Reads, adaptive, check_sampling, draw, gather
from vma.warps import Look


class VMA(GenerativeModel):
    """The generative model with memory, put together from parts; `vma.build_model` makes these from names.

    Few-shot: pass a `Memory` of raw items with every call, each time another one if you like. Learned memory:
    leave `memory` out, and the model's own parameter is used.

    >>> model = vma.build_vma(vma.ModelConfig(maps=8))
    >>> memory = vma.Memory.of(torch.zeros(5, 26, 26))
    >>> x = torch.zeros(2, 26, 26)
    >>> model(x, memory, samples=4).loss.backward()
    >>> model.posterior(x, memory).log_probs.shape, model.bound(x, memory, samples=10).shape
    (torch.Size([2, 5]), torch.Size([2]))

    Args:
        networks: The networks of one family, which map x, m and z.
        addressing: p(a) and q(a|x).
        likelihood: p(x|m,z).
        learned_memory: M, if it is a parameter.
        config: The configuration that the parts were made from, if any; needed to save the model.
    """

    has_addresses = True

    def __init__(
        self,
        networks: Networks,
        addressing: Addressing,
        likelihood: Likelihood,
        learned_memory: LearnedMemory | None = None,
        config: ModelConfig | None = None,
    ) -> None:
        super().__init__(config)
        self.likelihood = likelihood
        self.networks = networks
        self.addressing = addressing
        self.learned_memory = learned_memory
        self.latent, self.image_shape = networks.latent, networks.image_shape

    def memory(self, memory: AnyMemory = None) -> Memory:
        """The memory to use: the given one, checked, or the model's own learned one."""
        return choose_memory(memory, self.learned_memory, self.networks.item_shape, next(self.parameters()))

    def keyed(self, memory: AnyMemory = None) -> KeyedMemory:
        """The memory to use, with its keys, which are not computed again for a `KeyedMemory`.

        While the key network learns, they are: keys made by earlier weights would have no gradient, or an old one.
        """
        if not isinstance(memory, KeyedMemory) or self.learned_memory is not None:
            return self.addressing.keyed(self.memory(memory))
        like = next(self.parameters())
        check_shape("memory items", memory.items, self.networks.item_shape)
        raw = memory.memory.to(like)
        learns = torch.is_grad_enabled() and any(
            each.requires_grad for each in self.addressing.key.parameters()
        )
        return self.addressing.keyed(raw) if learns else KeyedMemory(raw, memory.keys.to(like))

    @torch.no_grad()
    def remember(self, items: Float[Tensor, "memory *image"]) -> KeyedMemory:
        """A memory of these images with its keys, to be kept; the likelihood must accept the images."""
        self.likelihood.check("images", items)
        return self.keyed(Memory(items)).by_coordinate()

    def prior(self, memory: AnyMemory = None) -> AddressDistribution:
        """p(a)."""
        return self.addressing.prior(self.keyed(memory))

    def posterior(self, x: Any, memory: AnyMemory = None) -> AddressDistribution:
        """q(a|x)."""
        keyed = self.keyed(memory)
        return self.addressing.posterior(self.targets(x), keyed)

    def terms(
        self,
        x: Any,
        memory: AnyMemory = None,
        samples: int = 4,
        *,
        sampling: str = "independent",
        hold_q_z: bool = False,
        chunk: int = 0,
        seen: Look | None = None,
        blind: float = 0.0,
        q_a: AddressDistribution | None = None,
        generator: torch.Generator | None = None,
    ) -> BoundTerms:
        """The terms of the bound at `samples` reads per target from q(a,z|x); pass `q_a` if it is known already."""
        check_samples(samples, 1, "A bound")
        check_sampling(sampling)
        if sampling == "adaptive" and hold_q_z:
            raise InputError("Adaptive reads are for evaluation: train with another sampling.")
        x = self.targets(x)
        found: WholeLook | SearchedLook
        if isinstance(memory, SearchedMemory):
            found = SearchedLook(memory, self.proposal(x, memory, seen))
        else:
            found = self.whole_look(x, memory, seen, q_a)

        def at(reads: Reads) -> BoundTerms:
            shape = (*reads.addresses.shape, self.latent)
            noise = torch.randn(shape, dtype=x.dtype, device=x.device, generator=generator)
            hidden = blind_targets(len(x), blind, x.device, generator)
            return self.terms_at(
                x,
                found.memory,
                found.p_a,
                found.q_a,
                reads,
                noise,
                hold_q_z=hold_q_z,
                blind=hidden,
                chunk=chunk,
            )

        # With so few reads, none can be spared for a pilot.
        plain = "independent" if sampling == "adaptive" and samples < FEWEST_ADAPTIVE else sampling
        return found.read(samples, plain, generator, at)

    def whole_look(
        self,
        x: Float[Tensor, "batch *image"],
        memory: AnyMemory,
        seen: Look | None,
        q_a: AddressDistribution | None,
    ) -> "WholeLook":
        """p(a) and q(a|x) over all of M; q(a|x) may be given."""
        keyed = self.keyed(memory)
        p_a = self.addressing.prior(keyed)
        if q_a is None:
            q_a = self.addressing.posterior(x, keyed) if seen is None else self.glance(x, keyed.memory, seen)
        return WholeLook(keyed.memory, p_a, q_a)

    def proposal(self, x: Any, memory: SearchedMemory, seen: Look | None = None) -> Proposal:
        """r(a|x) = (1 − ε) softmax_C β S(m_a, x) + ε p(a), where C is what a search of M finds.

        While the key network learns, the keys of the candidates are computed anew, and S has its gradient.
        """
        x = self.targets(x)
        e = self.addressing.queries(x if seen is None else seen(x))
        similarity = self.addressing.similarity
        with torch.no_grad():
            addresses = memory.search(similarity.queries(e)).to(e.device)
        keys = self.candidate_keys(addresses.clamp(min=0), memory, seen).to(e)
        scores = torch.stack([similarity.scores(each, query) for each, query in zip(keys, e, strict=True)])
        return Proposal(addresses, scores, memory.prior(), memory.epsilon, memory.sharpness)

    def candidate_keys(
        self, addresses: Int[Tensor, "batch candidates"], memory: SearchedMemory, seen: Look | None
    ) -> Float[Tensor, "batch candidates matching"]:
        """k_a of the candidates: as stored, or computed by the present weights while these learn."""
        if not (torch.is_grad_enabled() and any(each.requires_grad for each in self.addressing.parameters())):
            return memory.keys(addresses)
        items, place = addresses.unique(return_inverse=True)
        raw = memory.read(items).to(next(self.parameters()))
        return self.addressing.keyed(Memory(raw if seen is None else seen(raw))).keys[place]

    def glance(self, x: Float[Tensor, "batch *image"], memory: Memory, seen: Look) -> AddressDistribution:
        """q(a|x) by matching networks that see targets and items as `seen` shows them."""
        return self.addressing.posterior(seen(x), self.addressing.keyed(memory.showing(seen)))

    def terms_at(
        self,
        x: Float[Tensor, "batch *image"],
        memory: Memory | SearchedMemory,
        p_a: Prior,
        q_a: Posterior,
        reads: Reads,
        noise: Float[Tensor, "batch samples latent"],
        *,
        hold_q_z: bool = False,
        blind: Bool[Tensor, "batch"] | None = None,
        chunk: int = 0,
    ) -> BoundTerms:
        """The terms at given reads and `noise` of z, without further randomness.

        What depends on m alone is computed once per unique item; on x alone, once per target. The encoder runs
        once per unique pair of target and item, and only the decoder once per read. A `chunk` limits how many
        rows they process at a time.
        """
        targets, pixels = self.networks.targets(x), self.likelihood.targets(x, blind)
        blocks: list[Gather] = [*gather(reads).blocks(chunk)]
        home = torch.cat([block.reads for block in blocks]).argsort()

        def at_home(rows: Iterable[Tensor]) -> Tensor:
            return torch.cat(tuple(rows)).index_select(0, home).unflatten(0, reads.addresses.shape)

        with compiled.for_reads(len(home)):
            q_z = DiagonalGaussian.of_statistics(
                at_home(self.encode(targets, memory, block, chunk) for block in blocks)
            )
            z = q_z.sample(noise)
            decoded = [
                self.decode(pixels, z.flatten(0, 1)[block.reads], memory, block, chunk) for block in blocks
            ]
        p_z = DiagonalGaussian.of_statistics(at_home(prior for prior, _ in decoded))
        return BoundTerms(
            log_p_a=reads.log_prob(p_a).to(z),
            log_q_a=reads.log_prob(q_a),
            log_p_z=p_z.log_prob(z),
            log_q_z=(q_z.detach() if hold_q_z else q_z).log_prob(z),
            log_p_x=at_home(log_p_x for _, log_p_x in decoded),
            log_mass=reads.log_mass,
            kl_z=q_z.kl(p_z),
            p_a=p_a,
            q_a=q_a,
            z=z,
            log_rest=reads.log_rest,
            hold_q_z=hold_q_z,
        )

    def encode(
        self,
        targets: Float[Tensor, "batch *encoder"],
        memory: Memory | SearchedMemory,
        block: Gather,
        chunk: int,
    ) -> Float[Tensor, "reads twice_latent"]:
        """Statistics of q(z|m,x) of every read of a block."""
        items = self.networks.item_half(memory.read(block.items).to(targets))

        def of_pairs(part: slice) -> Tensor:
            return self.networks.encode(
                block.targets_of_pairs(targets, part), block.items_of_pairs(items, part)
            )

        return block.pairs_to_reads(in_chunks(of_pairs, block.pairs, chunk))

    def decode(
        self,
        pixels: tuple[Tensor, ...],
        z: Float[Tensor, "reads latent"],
        memory: Memory | SearchedMemory,
        block: Gather,
        chunk: int,
    ) -> tuple[Float[Tensor, "reads twice_latent"], Float[Tensor, "reads"]]:
        """Statistics of p(z|m), and log p(x|m,z), of every read of a block."""
        features = self.networks.items(memory.read(block.items).to(z))

        def log_p_x(part: slice) -> Tensor:
            maps = self.networks.decode(z[part], *block.halves(features.decoder, part))
            return self.likelihood.log_prob(pixels, block.read_target[part], maps)

        return block.to_reads(features.prior), in_chunks(log_p_x, len(z), chunk)

    @torch.no_grad()
    def exact_bound(
        self,
        x: Any,
        memory: AnyMemory = None,
        samples: int = 1,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "batch"]:
        """log Σ_a p(a) 1/S Σ_s p(x,z_s|m_a) / q(z_s|m_a,x): exact in a, with S = `samples` per address."""
        return multi_sample_bound(self.terms(x, memory, samples, sampling="all", generator=generator))

    def decoded_draws(
        self, memory: AnyMemory, samples: int, addresses: Any, generator: torch.Generator | None
    ) -> tuple[Int[Tensor, "samples"], Float[Tensor, "samples outputs height width"]]:
        """a ~ p(a), or the given `addresses`, and z ~ p(z|m_a); returns a and the decoder's output of m_a and z."""
        like = next(self.parameters())
        chosen: Memory | SearchedMemory
        if isinstance(memory, SearchedMemory):
            chosen, p_a = memory, memory.prior()
            addresses = p_a.sample(samples, generator) if addresses is None else addresses
        elif addresses is None:
            keyed = self.keyed(memory)
            chosen, addresses = keyed.memory, self.addressing.prior(keyed).sample(samples, generator)
        else:
            chosen = self.memory(memory)
        a = check_addresses(addresses, len(chosen), like.device)
        noise = like.new_empty((len(a), self.latent)).normal_(generator=generator)
        return a, self.decoded(chosen, a, noise)

    def decoded(
        self,
        memory: Memory | SearchedMemory,
        a: Int[Tensor, "samples"],
        noise: Float[Tensor, "samples latent"],
    ) -> Float[Tensor, "samples outputs height width"]:
        """The decoder's output for m_a and z = μ + σ ε, with μ and σ of p(z|m_a) and `noise` ε."""
        items, rows = a.unique(return_inverse=True)
        features = self.networks.items(memory.read(items).to(noise))
        z = DiagonalGaussian.of_statistics(features.prior[rows]).sample(noise)
        return self.networks.decode(z, tuple(half.index_select(0, rows) for half in features.decoder))

    @torch.no_grad()
    def draw(
        self,
        memory: Memory | SearchedMemory,
        a: Int[Tensor, "samples"],
        noise: Float[Tensor, "samples latent"],
        uniforms: Float[Tensor, "samples *image"],
        temperature: float = 1.0,
    ) -> Drawing:
        """x ~ p(x|m_a,z) from `uniforms`, at z = μ + σ ε with μ and σ of p(z|m_a) and `noise` ε."""
        return self.likelihood.draw(self.decoded(memory, a, noise), uniforms, temperature)


@dataclass(frozen=True)
class WholeLook:
    """M, p(a), and q(a|x) over all of it."""

    memory: Memory
    p_a: AddressDistribution
    q_a: AddressDistribution

    def read(
        self,
        samples: int,
        sampling: str,
        generator: torch.Generator | None,
        at: Callable[[Reads], BoundTerms],
    ) -> BoundTerms:
        """The terms that `at` gives for reads from q(a|x), drawn as `sampling` says."""
        if sampling == "adaptive":
            return adaptive(self.q_a, samples, self.memory, generator, at)
        return at(draw(self.q_a, samples, self.memory, sampling, generator))


@dataclass(frozen=True)
class SearchedLook:
    """M, and r(a|x) from what a search has found."""

    memory: SearchedMemory
    q_a: Proposal

    @property
    def p_a(self) -> Prior:
        """p(a)."""
        return self.q_a.p_a

    def read(
        self,
        samples: int,
        sampling: str,
        generator: torch.Generator | None,
        at: Callable[[Reads], BoundTerms],
    ) -> BoundTerms:
        """The terms that `at` gives for reads from r(a|x), drawn as `sampling` says."""
        return draw_places(self.q_a, samples, sampling, generator, at)


def check_addresses(addresses: Any, count: int, device: torch.device) -> Int[Tensor, "samples"]:
    """`addresses` as a tensor, checked against a memory of `count` items."""
    a = as_tensor("addresses", addresses).to(device)
    whole = a.ndim == 1 and len(a) > 0 and not a.is_floating_point()
    if not whole or int(a.min()) < 0 or int(a.max()) >= count:
        raise InputError(f"addresses must be one or more whole numbers from 0 to {count - 1}.")
    return a.long()


def addressed(model: GenerativeModel, purpose: str) -> VMA:
    """The model, if it has addresses; otherwise an error that names the `purpose`, such as `dream`."""
    if not isinstance(model, VMA):
        raise InputError(f"A {type(model).__name__} has no addresses, so it cannot {purpose}: use a VMA.")
    return model
