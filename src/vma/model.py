"""p(x|M) = Σ_a p(a) ∫ p(z|m_a) p(x|z,m_a) dz (equation 1), and q(a,z|x) = q(a|x) q(z|m_a,x) (equation 3)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from vma.addressing import AddressDistribution, Addressing
from vma.bounds import BoundTerms, multi_sample_bound
from vma.checks import as_targets, as_tensor, check_samples
from vma.chunks import in_chunks
from vma.config import ModelConfig
from vma.errors import InputError
from vma.estimators import Estimate, estimate, find_estimator
from vma.kernels import compiled
from vma.latents import DiagonalGaussian
from vma.likelihoods import Drawing, build_likelihood
from vma.memory import LearnedMemory, Memory, choose_memory
from vma.networks import build_networks
from vma.reads import Gather, Reads, draw, gather
from vma.similarity import similarity
from vma.warps import Look


@dataclass(frozen=True)
class Samples:
    """Draws from p(x|M).

    Attributes:
        addresses: a of each.
        images: x.
        probabilities: The probability of ink at every pixel, from which the images were drawn; of grey levels
            and colours, their means.
        shown: What a figure shows of them (see `Drawing`).
    """

    addresses: Int[Tensor, "samples"]
    images: Float[Tensor, "samples *image"]
    probabilities: Float[Tensor, "samples *image"]
    shown: Float[Tensor, "samples *image"]

    @staticmethod
    def of(addresses: Int[Tensor, "samples"], drawn: Drawing) -> "Samples":
        """What was drawn, with where it came from."""
        return Samples(addresses, drawn.images, drawn.means, drawn.shown)


class VMA(nn.Module):
    """The generative model with memory.

    Few-shot: pass a `Memory` of raw items with every call; it may be another one each time. Learned memory:
    leave `memory` out, and the model's own parameter is used.
    """

    def __init__(self, config: ModelConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or ModelConfig()
        self.likelihood = build_likelihood(config)
        self.networks = build_networks(config, self.likelihood.output)
        key = self.networks.embedding(config.item_shape)
        query = None if config.tied else self.networks.embedding(config.image_shape)
        self.addressing = Addressing(key, query, similarity(config.similarity), config.matching, config.prior)
        learned = config.learned_items
        self.learned_memory = LearnedMemory(learned, config.item_shape) if learned else None

    def memory(self, memory: Memory | None = None) -> Memory:
        """The memory to use: the given one, checked, or the model's own learned one."""
        return choose_memory(memory, self.learned_memory, self.config.item_shape, next(self.parameters()))

    def targets(self, x: Any) -> Float[Tensor, "batch *image"]:
        """Targets x, checked, with the type of the weights."""
        images = as_targets(x, self.config.image_shape, next(self.parameters()))
        self.likelihood.check("targets", images)
        return images

    def prior(self, memory: Memory | None = None) -> AddressDistribution:
        """p(a)."""
        memory = self.memory(memory)
        return self.addressing.prior(memory, self.addressing.keys(memory))

    def posterior(self, x: Any, memory: Memory | None = None) -> AddressDistribution:
        """q(a|x)."""
        memory = self.memory(memory)
        return self.addressing.posterior(self.targets(x), memory, self.addressing.keys(memory))

    def terms(
        self,
        x: Any,
        memory: Memory | None = None,
        samples: int = 4,
        *,
        sampling: str = "independent",
        hold_q_z: bool = False,
        chunk: int = 0,
        seen: Look | None = None,
        blind: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> BoundTerms:
        """The terms of the bound at `samples` reads per target, drawn from q(a,z|x).

        Args:
            x: Targets [B, height, width] in [0, 1].
            memory: M; left out for learned memory.
            samples: K. With `sampling="all"`, the number of z for each address.
            sampling: `independent`, `all`, `stratified`, `without-replacement` or `straight-through`.
            hold_q_z: Hold q(z|m,x) fixed in log q(z|m,x), as `dreg` asks.
            chunk: Rows that a network sees at a time, for a large K; 0 for all at once.
            seen: What q(a|x) sees of an image, in training; p(a) and all else see it as it is.
            blind: Share of the targets whose pixels do not know those before them, in training (`reading-order`).
            generator: Source of randomness.
        """
        check_samples(samples, 1, "A bound")
        x, memory = self.targets(x), self.memory(memory)
        keys = self.addressing.keys(memory)
        p_a = self.addressing.prior(memory, keys)
        q_a = self.addressing.posterior(x, memory, keys) if seen is None else self.glance(x, memory, seen)
        reads = draw(q_a, samples, memory, sampling, generator)
        shape = (*reads.addresses.shape, self.config.latent)
        noise = torch.randn(shape, dtype=x.dtype, device=x.device, generator=generator)
        hidden = blind_targets(len(x), blind, x.device, generator)
        return self.terms_at(x, memory, p_a, q_a, reads, noise, hold_q_z=hold_q_z, blind=hidden, chunk=chunk)

    def glance(self, x: Float[Tensor, "batch *image"], memory: Memory, seen: Look) -> AddressDistribution:
        """q(a|x) of matching networks that see targets and items as `seen` shows them."""
        return self.addressing.posterior(seen(x), memory, self.addressing.keys(memory.showing(seen)))

    def terms_at(
        self,
        x: Float[Tensor, "batch *image"],
        memory: Memory,
        p_a: AddressDistribution,
        q_a: AddressDistribution,
        reads: Reads,
        noise: Float[Tensor, "batch samples latent"],
        *,
        hold_q_z: bool = False,
        blind: Bool[Tensor, "batch"] | None = None,
        chunk: int = 0,
    ) -> BoundTerms:
        """The terms at given reads and `noise` of z; no randomness is left.

        What depends on m alone is computed once per unique item, on x alone once per target, the encoder once per
        unique pair of target and item, and only the decoder once per read; with a `chunk`, for so many rows at
        a time.
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
            log_p_a=reads.log_prob(p_a),
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
        self, targets: Float[Tensor, "batch *encoder"], memory: Memory, block: Gather, chunk: int
    ) -> Float[Tensor, "reads twice_latent"]:
        """Statistics of q(z|m,x) of every read of a block."""
        items = self.networks.item_half(memory.read(block.items))

        def of_pairs(part: slice) -> Tensor:
            return self.networks.encode(
                block.targets_of_pairs(targets, part), block.items_of_pairs(items, part)
            )

        return block.pairs_to_reads(in_chunks(of_pairs, block.pairs, chunk))

    def decode(
        self,
        pixels: tuple[Tensor, ...],
        z: Float[Tensor, "reads latent"],
        memory: Memory,
        block: Gather,
        chunk: int,
    ) -> tuple[Float[Tensor, "reads twice_latent"], Float[Tensor, "reads"]]:
        """Statistics of p(z|m), and log p(x|m,z), of every read of a block."""
        features = self.networks.items(memory.read(block.items))

        def log_p_x(part: slice) -> Tensor:
            maps = self.networks.decode(z[part], *block.halves(features.decoder, part))
            return self.likelihood.log_prob(pixels, block.read_target[part], maps)

        return block.to_reads(features.prior), in_chunks(log_p_x, len(z), chunk)

    def forward(
        self,
        x: Any,
        memory: Memory | None = None,
        samples: int = 4,
        *,
        estimator: str = "vimco",
        latent_gradient: str = "pathwise",
        seen: Look | None = None,
        blind: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> Estimate:
        """Bound and surrogate of one update: `(-model(x, memory).surrogate).backward()`.

        Args:
            x: Targets.
            memory: M; left out for learned memory.
            samples: K.
            estimator: One of `vma.ESTIMATORS`.
            latent_gradient: `pathwise` or `dreg`.
            seen: What q(a|x) sees of an image, such as `vma.warps.look` gives.
            blind: Share of the targets whose pixels do not know those before them (`reading-order`).
            generator: Source of randomness.
        """
        chosen = find_estimator(estimator)
        check_samples(samples, chosen.least_samples, f"The estimator {estimator!r}")
        terms = self.terms(
            x,
            memory,
            1 if chosen.sampling == "all" else samples,
            sampling=chosen.sampling,
            hold_q_z=latent_gradient == "dreg",
            seen=seen,
            blind=blind,
            generator=generator,
        )
        return estimate(terms, estimator, latent_gradient)

    @torch.no_grad()
    def bound(
        self,
        x: Any,
        memory: Memory | None = None,
        samples: int = 4,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "batch"]:
        """L = log 1/K Σ_k w_k (eq. 7) for each target, with K = `samples`."""
        return multi_sample_bound(self.terms(x, memory, samples, generator=generator))

    @torch.no_grad()
    def exact_bound(
        self,
        x: Any,
        memory: Memory | None = None,
        samples: int = 1,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "batch"]:
        """log Σ_a p(a) 1/S Σ_s p(x,z_s|m_a) / q(z_s|m_a,x): exact in a, with S = `samples` per address."""
        return multi_sample_bound(self.terms(x, memory, samples, sampling="all", generator=generator))

    @torch.no_grad()
    def sample(
        self,
        memory: Memory | None = None,
        samples: int = 16,
        *,
        addresses: Any = None,
        generator: torch.Generator | None = None,
    ) -> Samples:
        """a ~ p(a), z ~ p(z|m_a), x ~ p(x|m_a,z); with `addresses` given, one sample from each of them."""
        memory = self.memory(memory)
        if addresses is None:
            check_samples(samples, 1, "Sampling")
            addresses = self.addressing.prior(memory, self.addressing.keys(memory)).sample(samples, generator)
        addresses = check_addresses(addresses, memory)
        noise = memory.items.new_empty((len(addresses), self.config.latent)).normal_(generator=generator)
        uniforms = noise.new_empty((len(addresses), *self.config.image_shape)).uniform_(generator=generator)
        return Samples.of(addresses, self.draw(memory, addresses, noise, uniforms))

    @torch.no_grad()
    def draw(
        self,
        memory: Memory,
        a: Int[Tensor, "samples"],
        noise: Float[Tensor, "samples latent"],
        uniforms: Float[Tensor, "samples *image"],
        temperature: float = 1.0,
    ) -> Drawing:
        """x ~ p(x|m_a,z) by `uniforms`, at z = μ + σ ε with μ and σ those of p(z|m_a) and `noise` ε."""
        items, rows = a.unique(return_inverse=True)
        features = self.networks.items(memory.read(items))
        z = DiagonalGaussian.of_statistics(features.prior[rows]).sample(noise)
        item = tuple(half.index_select(0, rows) for half in features.decoder)
        return self.likelihood.draw(self.networks.decode(z, item), uniforms, temperature)


def blind_targets(
    count: int, share: float, device: torch.device, generator: torch.Generator | None
) -> Bool[Tensor, "batch"] | None:
    """Each of `count` targets with the probability `share`; None where that is 0."""
    if not 0 <= share <= 1:
        raise InputError(f"blind is a share of the targets, from 0 to 1, not {share}.")
    return torch.rand(count, device=device, generator=generator) < share if share else None


def check_addresses(addresses: Any, memory: Memory) -> Int[Tensor, "samples"]:
    """`addresses` as a tensor of numbers of the memory's items."""
    a = as_tensor("addresses", addresses).to(memory.items.device)
    whole = a.ndim == 1 and len(a) > 0 and not a.is_floating_point()
    if not whole or int(a.min()) < 0 or int(a.max()) >= len(memory):
        raise InputError(f"addresses must be one or more whole numbers from 0 to {len(memory) - 1}.")
    return a.long()
