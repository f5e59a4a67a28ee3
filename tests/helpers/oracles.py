"""Exact answers: enumeration over addresses, quadrature over z, closed forms, and a per-pair reference."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from vma import VMA, AddressDistribution, BoundTerms, Memory, ModelConfig, multi_sample_bound
from vma.estimators import Estimate
from vma.latents import DiagonalGaussian
from vma.reads import Reads
from vma.subsets import log_mass_of_set

# All stochastic tests together fail by chance about once in a million runs.
FAILURE_RATE = 1e-6
STOCHASTIC_TESTS = 50
LEVEL = FAILURE_RATE / STOCHASTIC_TESTS
SIGMAS = 5.7  # two-sided normal quantile of LEVEL


# --- random sets of addresses ------------------------------------------------------------------------------


def tuples(log_q: Tensor, samples: int) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """All |M|^K tuples of addresses with their probability Π_k q(a_k)."""
    for a in itertools.product(range(len(log_q)), repeat=samples):
        yield a, log_q[list(a)].sum().exp()


def distinct_tuples(log_q: Tensor, samples: int) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """All ordered draws of K distinct addresses with their probability Π_k q(a_k) / (1 − Σ_{j<k} q(a_j))."""
    q = log_q.exp()
    for a in itertools.permutations(range(len(log_q)), samples):
        gone, probability = torch.zeros(()), torch.ones(())
        for i in a:
            probability = probability * q[i] / (1 - gone)
            gone = gone + q[i]
        yield a, probability


def expected_gradient(
    outcomes: Iterable[tuple[tuple[int, ...], Tensor]],
    surrogate: Callable[[tuple[int, ...]], Tensor],
    parameters: Sequence[Tensor],
) -> Tensor:
    """Σ P(outcome) ∇ surrogate(outcome), flattened; P is not differentiated."""
    total = torch.zeros(sum(p.numel() for p in parameters))
    for outcome, probability in outcomes:
        total += probability.detach() * flat_gradient(surrogate(outcome), parameters)
    return total


def flat_gradient(value: Tensor, parameters: Sequence[Tensor]) -> Tensor:
    """∇ value with respect to all parameters in one vector; zero where it does not depend on one."""
    gradients = torch.autograd.grad(value, parameters, allow_unused=True, retain_graph=True)
    pairs = zip(gradients, parameters, strict=True)
    return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in pairs])


# --- a table instead of networks ---------------------------------------------------------------------------


class Table:
    """One target, |M| addresses, no z: log p(a), log q(a|x) and log p(x|a) are free parameters."""

    def __init__(self, items: int, spread: float = 1.0) -> None:
        self.prior, self.query, self.fit = ((spread * torch.randn(items)).requires_grad_() for _ in range(3))
        self.parameters = [self.prior, self.query, self.fit]

    @property
    def log_q(self) -> Tensor:
        return self.query.log_softmax(0)

    @property
    def log_w(self) -> Tensor:
        """log p(x,a) − log q(a|x) of every address."""
        return self.prior.log_softmax(0) + self.fit - self.log_q

    def reads(self, a: Sequence[int]) -> Reads:
        """Independent reads of the addresses `a`."""
        return Reads(torch.tensor([a]), torch.full((1, len(a)), -math.log(len(a))))

    def distinct_reads(self, a: Sequence[int]) -> Reads:
        """Reads of the distinct addresses `a`, with the mass that each stands for."""
        log_q = self.log_q.detach()
        rest = log_q.index_fill(0, torch.tensor(a), -torch.inf)
        log_rest = rest.logsumexp(0)[None]
        return Reads(torch.tensor([a]), log_mass_of_set(log_q[list(a)][None], log_rest), log_rest)

    def terms(self, reads: Reads) -> BoundTerms:
        """The terms at `reads`, for as many targets as these have."""
        zero = torch.zeros_like(reads.log_mass)
        prior = AddressDistribution(self.prior.log_softmax(0))
        posterior = AddressDistribution(self.log_q.expand(len(reads.addresses), -1))
        fit = AddressDistribution(self.fit)
        log_p_a, log_q_a, log_p_x = (reads.log_prob(d) for d in (prior, posterior, fit))
        return BoundTerms(log_p_a, log_q_a, zero, zero, log_p_x, reads.log_mass, log_rest=reads.log_rest)

    def independent(self, estimator: Callable[[BoundTerms], Estimate]) -> Callable[[tuple[int, ...]], Tensor]:
        """The surrogate of `estimator` as a function of a tuple of addresses."""
        return lambda a: estimator(self.terms(self.reads(a))).surrogate

    def expected_bound(self, samples: int) -> Tensor:
        """E over all |M|^K tuples of L, differentiable in everything."""
        return torch.stack(
            [p * multi_sample_bound(self.terms(self.reads(a)))[0] for a, p in tuples(self.log_q, samples)]
        ).sum()

    def elbo(self) -> Tensor:
        """Σ_a q(a) log w_a."""
        return (self.log_q.exp() * self.log_w).sum()


# --- small models ------------------------------------------------------------------------------------------


def small_mlp(**changes: object) -> ModelConfig:
    """An MLP that can be enumerated: 4×4 pixels, z of 2."""
    config = ModelConfig(
        height=4, width=4, family="mlp", hidden=(7, 5), latent=2, matching=6, item_size=5, ink=0.3
    )
    return replace(config, **changes)  # type: ignore[arg-type]


def small_convolutional(**changes: object) -> ModelConfig:
    """A convolutional model of odd sizes, so that every rounding of the scales is met."""
    config = ModelConfig(height=17, width=22, maps=8, hidden=(9,), latent=3, matching=6)
    return replace(config, **changes)  # type: ignore[arg-type]


def bits(*shape: int) -> Tensor:
    """A random binary tensor."""
    return (torch.rand(*shape) < 0.3).double()


def episode(config: ModelConfig, targets: int, items: int) -> tuple[Tensor, Memory | None]:
    """Targets, and a raw memory unless the model learns its own."""
    x = bits(targets, *config.image_shape)
    return x, None if config.learned_items else Memory.of(bits(items, *config.image_shape))


def distributions(
    model: VMA, x: Tensor, memory: Memory | None
) -> tuple[Memory, AddressDistribution, AddressDistribution]:
    """M, p(a) and q(a|x), with gradients."""
    chosen = model.memory(memory)
    return chosen, model.prior(memory), model.posterior(x, memory)


# --- the straightforward way -------------------------------------------------------------------------------


def reference_terms(
    model: VMA, x: Tensor, memory: Memory, p_a: AddressDistribution, q_a: AddressDistribution,
    addresses: Tensor, noise: Tensor,
) -> BoundTerms:  # fmt: skip
    """The terms one (target, read) pair at a time, with concatenations instead of split layers."""
    rows: dict[str, list[Tensor]] = {name: [] for name in ("p_z", "q_z", "p_x", "kl")}
    for b, k in itertools.product(*map(range, addresses.shape)):
        m = memory.items[addresses[b, k]][None]
        prior = DiagonalGaussian.of_statistics(reference_prior(model, m))
        posterior = DiagonalGaussian.of_statistics(reference_encoder(model, x[b][None], m))
        z = posterior.mean + posterior.log_std.exp() * noise[b, k]
        p_z, q_z = (torch.distributions.Normal(d.mean, d.log_std.exp()) for d in (prior, posterior))
        rows["p_z"].append(p_z.log_prob(z).sum())
        rows["q_z"].append(q_z.log_prob(z).sum())
        rows["p_x"].append(reference_log_prob(model, x[b], reference_decoder(model, m, z))[0])
        rows["kl"].append(torch.distributions.kl_divergence(q_z, p_z).sum())
    p_z, q_z, p_x, kl = (torch.stack(values).view(addresses.shape) for values in rows.values())
    log_q_a = torch.stack([q_a.log_probs[b][addresses[b]] for b in range(len(x))])
    mass = torch.full_like(p_z, -math.log(addresses.shape[1]))
    return BoundTerms(p_a.log_probs[addresses], log_q_a, p_z, q_z, p_x, mass, kl)


def with_channels(images: Tensor) -> Tensor:
    return images if images.ndim == 4 else images[:, None]


def reference_prior(model: VMA, m: Tensor) -> Tensor:
    networks = model.networks
    if model.config.family == "mlp":
        return networks.prior(m.flatten(1))
    return networks.prior(pyramid(networks.item_pyramid, networks.item_first(with_channels(m)))[-1])


def reference_encoder(model: VMA, x: Tensor, m: Tensor) -> Tensor:
    networks = model.networks
    if model.config.family == "mlp":
        weight = torch.cat((networks.encoder_x.weight, networks.encoder_m.weight), 1)
        both = torch.cat((x.flatten(1), m.flatten(1)), 1)
        return networks.encoder(torch.relu(both @ weight.T + networks.encoder_x.bias))
    weight = torch.cat((networks.encoder_x.weight, networks.encoder_m.weight), 1)
    both = torch.cat((with_channels(x), with_channels(m)), 1)
    first = torch.nn.functional.conv2d(both, weight, networks.encoder_x.bias, padding=1)
    return networks.encoder_head(pyramid(networks.encoder_pyramid, first)[-1])


def reference_decoder(model: VMA, m: Tensor, z: Tensor) -> Tensor:
    networks = model.networks
    if model.config.family == "mlp":
        weight = torch.cat((networks.decoder_z.weight, networks.decoder_m.weight), 1)
        both = torch.cat((z, m.flatten(1)), 1)
        h = both @ weight.T + networks.decoder_z.bias
        for number, layer in enumerate(networks.decoder[::2]):
            weight, inputs = layer.weight, torch.relu(h)
            if model.config.item_layers == "all":
                weight = torch.cat((weight, networks.decoder_skips[number].weight), 1)
                inputs = torch.cat((inputs, m.flatten(1)), 1)
            h = inputs @ weight.T + layer.bias
        return h.view(len(h), -1, model.config.height, model.config.width)
    levels = pyramid(networks.item_pyramid, networks.item_first(with_channels(m)))
    return reference_upwards(networks.decoder, z, networks.context(levels[-1]), levels)


def reference_upwards(decoder: torch.nn.Module, z: Tensor, context: Tensor, levels: list[Tensor]) -> Tensor:
    """Transposed convolutions of concatenations, as the paper describes them."""
    weight = torch.cat((decoder.hidden_z.weight, decoder.hidden_m.weight), 1)
    hidden = decoder.activation(torch.cat((z, context), 1) @ weight.T + decoder.hidden_z.bias)
    h = decoder.activation(decoder.expand(hidden)).view(-1, *decoder.smallest)
    for i, (of_h, of_m) in enumerate(zip(decoder.layers_h, decoder.layers_m, strict=True)):
        both = torch.cat((h, levels[5 - i]), 1)
        if isinstance(of_h, torch.nn.ConvTranspose2d):
            weight = torch.cat((of_h.weight, of_m.weight), 0)
            extra = of_h.output_padding
            y = torch.nn.functional.conv_transpose2d(both, weight, of_m.bias, 2, 1, extra)
        else:
            y = torch.nn.functional.conv2d(
                both, torch.cat((of_h.weight, of_m.weight), 1), of_m.bias, padding=1
            )
        h = y if i == 5 else finish(decoder.finishes[i], y, h)
    return h


def reference_log_prob(model: VMA, x: Tensor, features: Tensor) -> Tensor:
    """log p(x|m,z) of one target for each row of `features`, by torch's own distributions."""
    config = model.config
    if config.likelihood == "categorical":
        logits = features.unflatten(1, (config.channels, config.levels)).permute(0, 1, 3, 4, 2)
        level = (x * (config.levels - 1)).round().view(1, *logits.shape[1:4])
        return torch.distributions.Categorical(logits=logits).log_prob(level).sum((1, 2, 3))
    logits = features[:, 0]
    if config.likelihood == "reading-order":
        logits = reference_logits(model.likelihood, x, features)
    return torch.distributions.Bernoulli(logits=logits).log_prob(x).sum((1, 2))


def reference_logits(likelihood: torch.nn.Module, x: Tensor, features: Tensor) -> Tensor:
    """Log-odds of ink in reading order, each pixel's from an image in which it and all later ones are erased."""
    logits = torch.empty(len(features), *x.shape)
    for row, column in itertools.product(*map(range, x.shape)):
        known = x.clone()
        known[row, column:] = 0
        known[row + 1 :] = 0
        c = reference_context(likelihood.context, known)[:, row, column]
        y = silu(features[:, :, row, column] + c)
        y = silu(y @ likelihood.mix.weight.T + likelihood.mix.bias)
        logits[:, row, column] = (y @ likelihood.last.weight.T + likelihood.last.bias)[:, 0]
    return logits


def reference_context(context: torch.nn.Module, x: Tensor) -> Tensor:
    """c by plain convolutions over whole neighbourhoods, whose lower half is zero."""
    c, h = torch.zeros(()), x[None, None]
    for layer in (context.first, *context.others):
        (above, size), half = layer.kernel_size, layer.kernel_size[1] // 2
        whole = torch.zeros(*layer.weight.shape[:2], size, size)
        whole[:, :, :above] = layer.weight
        whole[:, :, half, half + (layer is not context.first) :] = 0
        c = c + torch.nn.functional.conv2d(h, whole, layer.bias, padding=half)
        h = silu(c)
    return c[0]


def silu(y: Tensor) -> Tensor:
    return y * torch.sigmoid(y)


def pyramid(module: torch.nn.Module, y: Tensor) -> list[Tensor]:
    levels = [finish(module.finishes[0], y, None)]
    for layer, last in zip(module.layers, list(module.finishes)[1:], strict=True):
        levels.append(finish(last, layer(levels[-1]), levels[-1]))
    return levels


def finish(module: torch.nn.Module, y: Tensor, h: Tensor | None) -> Tensor:
    if module.norm is None:
        return torch.relu(y)  # not clamp, whose slope at 0 is 1: blank corners give exactly 0
    y = module.norm(y)
    if h is not None and h.shape == y.shape:
        y = y + h
    return silu(y)


# --- exact marginals ---------------------------------------------------------------------------------------


def quadrature(nodes: int, dimensions: int) -> tuple[Tensor, Tensor]:
    """Points and log-weights of the trapezoidal rule for a standard normal in `dimensions` dimensions."""
    points = np.linspace(-8.5, 8.5, nodes)
    weights = np.exp(-0.5 * points**2)
    grid = torch.tensor(list(itertools.product(points, repeat=dimensions)))
    each = torch.tensor(list(itertools.product(weights / weights.sum(), repeat=dimensions)))
    return grid, each.log().sum(1)


@torch.no_grad()
def exact_log_marginal(model: VMA, x: Tensor, memory: Memory | None, nodes: int = 101) -> Tensor:
    """log p(x|M) = log Σ_a p(a) ∫ p(z|m_a) p(x|m_a,z) dz, by enumeration and quadrature."""
    chosen, p_a, _ = distributions(model, x, memory)
    points, log_weights = quadrature(nodes, model.config.latent)
    of_address = []
    for a in range(len(chosen)):
        m = chosen.items[a][None]
        prior = DiagonalGaussian.of_statistics(reference_prior(model, m))
        zs = prior.mean + prior.log_std.exp() * points
        features = reference_decoder(model, m.expand(len(zs), *m.shape[1:]), zs)
        log_p_x = torch.stack([reference_log_prob(model, target, features) for target in x])
        of_address.append(p_a.log_probs[a] + torch.logsumexp(log_weights + log_p_x, 1))
    return torch.logsumexp(torch.stack(of_address), 0)


def chi_square_p_value(counts: Tensor, probabilities: Tensor) -> float:
    """P(a chi-square at least as large as that of `counts`), rare categories pooled to 10 expected counts."""
    order = probabilities.argsort(descending=True)
    expected, observed = probabilities[order] * counts.sum(), counts[order].double()
    group = (expected.cumsum(0) / 10).floor().long()
    group = torch.where(expected >= 10, torch.arange(len(group)) + group.max() + 1, group)
    _, group = torch.unique(group, return_inverse=True)
    bins = torch.zeros(int(group.max()) + 1)
    e, o = bins.index_add(0, group, expected), bins.index_add(0, group, observed)
    e, o = e[e > 5], o[e > 5]
    statistic = ((o - e).square() / e).sum()
    return float(torch.special.gammaincc(torch.tensor((len(e) - 1) / 2.0), statistic / 2))
